//! A control plane without a data plane, for trying the API by hand:
//! `cargo run -p notation-host --example serve -- DATA_DIR 127.0.0.1:8080 [CONTRACTS] [CONFORMANCE]`.
//! Tokens are taken from HOST_T1P1, HOST_T1P2 and HOST_T2 where set.

use notation_host::{Grant, Host, HostConfig, NoDataPlane, Scope};
use std::sync::Arc;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut config = HostConfig::new(args.next().ok_or("a data directory is needed")?);
    let address = args.next().ok_or("an address is needed")?;
    config.contracts = args.next().map(Into::into);
    if let Some(contract) = args.next() {
        config = config.with_conformance(contract);
    }
    let host = Host::open(config, Arc::new(NoDataPlane)).await?;
    for (variable, tenant, principal) in [
        ("HOST_T1P1", "t1", "p1"),
        ("HOST_T1P2", "t1", "p2"),
        ("HOST_T2", "t2", "p1"),
    ] {
        if let Ok(token) = std::env::var(variable) {
            let grant = Grant {
                tenant: tenant.to_owned(),
                principal: principal.to_owned(),
                scopes: [Scope::Api, Scope::Sealed].into(),
                label: variable.to_owned(),
            };
            host.install_token(&token, grant).await?;
        }
    }
    let listener = tokio::net::TcpListener::bind(&address).await?;
    host.serve(listener, async {
        // Serving goes on when signals cannot be listened to.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
    .await?;
    Ok(())
}
