//! What a running host answers to the command line: one question per connection.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::Arc,
    time::Duration,
};

use notation_host::{Grant, Host, HostError, Scope, SealedAt, TokenRecord};
use notation_runtime::State;
use serde_json::{Value as Json, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{UnixListener, UnixStream},
    sync::watch,
};

use super::{
    control::{Ask, WorkerAt},
    plane::Plane,
};

/// Longest question, in bytes: a sealed value as JSON text, and what is around it.
const MAX_QUESTION: u64 = 1 << 20;

/// Answers until the listener fails or the process ends.
pub async fn answer_all(
    listener: UnixListener,
    host: Host,
    plane: Arc<Plane>,
    stop: watch::Sender<bool>,
) {
    while let Ok((stream, _)) = listener.accept().await {
        let (host, plane, stop) = (host.clone(), plane.clone(), stop.clone());
        tokio::spawn(async move {
            if let Err(error) = answer(stream, &host, &plane, &stop).await {
                tracing::debug!(%error, "a question of the command line was not answered");
            }
        });
    }
}

async fn answer(
    mut stream: UnixStream,
    host: &Host,
    plane: &Plane,
    stop: &watch::Sender<bool>,
) -> io::Result<()> {
    let (from, mut to) = stream.split();
    let mut line = String::new();
    let mut question = BufReader::new(from.take(MAX_QUESTION));
    // An asker that says nothing is not waited for.
    tokio::time::timeout(Duration::from_secs(10), question.read_line(&mut line)).await??;
    let ask: Ask = serde_json::from_str(&line).map_err(io::Error::other)?;
    let stops = ask == Ask::Stop;
    let answer = match answered(ask, host, plane).await {
        Ok(answer) => answer,
        Err(error) => json!({
            "error": error.to_string(),
            "refused": matches!(error, HostError::Refused(_)),
        }),
    };
    to.write_all(format!("{answer}\n").as_bytes()).await?;
    to.flush().await?;
    if stops {
        stop.send_replace(true);
    }
    Ok(())
}

async fn answered(ask: Ask, host: &Host, plane: &Plane) -> Result<Json, HostError> {
    Ok(match ask {
        Ask::Status => status(host, plane),
        Ask::Stop => json!({ "stopping": true }),
        Ask::CreateToken {
            tenant,
            principal,
            scopes,
            label,
        } => {
            let scopes = scopes
                .iter()
                .filter_map(|scope| Scope::read(scope))
                .collect();
            let grant = Grant {
                tenant,
                principal,
                scopes,
                label,
            };
            let (record, text) = host.create_token(grant).await?;
            json!({ "token": token_row(&record), "text": text })
        }
        Ask::ListTokens => {
            json!({ "tokens": host.tokens().iter().map(token_row).collect::<Vec<_>>() })
        }
        Ask::RevokeToken { id } => json!({ "revoked": host.revoke_token(&id).await? }),
        Ask::Tenants => tenants(host),
        Ask::SetSecret {
            worker,
            name,
            value,
        } => {
            host.set_sealed(&at(worker), &name, value.0.as_bytes())
                .await?;
            json!({ "set": name })
        }
        Ask::ListSecrets { worker } => {
            json!({ "secrets": host.sealed_names_at(&at(worker)).await? })
        }
        Ask::RemoveSecret { worker, name } => {
            json!({ "removed": host.remove_sealed(&at(worker), &name).await? })
        }
        Ask::Collect => {
            let collected = host.collect_garbage().await?;
            json!({
                "uploads": collected.uploads,
                "operations": collected.operations,
                "holds": collected.holds,
                "artifacts": collected.artifacts,
                "data": collected.data,
            })
        }
    })
}

fn at(worker: WorkerAt) -> SealedAt {
    SealedAt {
        tenant: worker.tenant,
        space: worker.space,
        worker: worker.name,
    }
}

/// Tenants that have a token or something stored.
fn tenants(host: &Host) -> Json {
    let mut tenants: BTreeMap<String, (BTreeSet<String>, usize, usize)> = BTreeMap::new();
    for record in host.tokens() {
        let tenant = tenants.entry(record.grant.tenant).or_default();
        tenant.0.insert(record.grant.principal);
        tenant.1 += 1;
    }
    for (name, tenant) in &host.worlds().borrow().tenants {
        tenants.entry(name.to_string()).or_default().2 = tenant.world.len();
    }
    let rows: Vec<Json> = tenants
        .into_iter()
        .map(|(name, (principals, tokens, resources))| {
            json!({
                "tenant": name,
                "principals": principals,
                "tokens": tokens,
                "resources": resources,
            })
        })
        .collect();
    json!({ "tenants": rows })
}

fn token_row(record: &TokenRecord) -> Json {
    let scopes: Vec<_> = record
        .grant
        .scopes
        .iter()
        .map(|scope| scope.as_str())
        .collect();
    json!({
        "id": record.id,
        "tenant": record.grant.tenant,
        "principal": record.grant.principal,
        "scopes": scopes,
        "label": record.grant.label,
        "created": record.created,
    })
}

/// What runs and what is stored.
fn status(host: &Host, plane: &Plane) -> Json {
    let snapshot = host.worlds().borrow().clone();
    let runs = plane
        .runtime()
        .map(|runtime| runtime.status())
        .unwrap_or_default();
    let mut resources = Vec::new();
    let mut url_of = BTreeMap::new();
    for tenant in snapshot.tenants.values() {
        for resource in tenant.world.resources() {
            resources.push(json!({
                "space": &*resource.key.space,
                "kind": &*resource.key.kind,
                "name": &*resource.key.name,
                "uid": resource.uid.to_string(),
            }));
        }
        for endpoint in tenant.world.endpoints() {
            if let Some(address) = runs.addresses.get(&endpoint.hostname) {
                url_of.insert(endpoint.worker.to_string(), address.url.clone());
            }
        }
    }
    let leaving =
        |state: State| matches!(state, State::Draining | State::Stopping | State::LastStart);
    let row = |version: &notation_runtime::VersionStatus| {
        json!({
            "worker": version.worker_name,
            "version": version.version.to_string(),
            "state": version.state.word(),
            "pid": version.pid,
            "in_flight": version.in_flight,
            "url": url_of.get(version.worker.as_str()),
            "failure": version.failure,
        })
    };
    let (draining, workers): (Vec<_>, Vec<_>) = runs
        .versions
        .iter()
        .partition(|version| leaving(version.state));
    let addresses = runs.addresses.iter().map(|(hostname, address)| {
        json!({ "hostname": hostname, "url": address.url, "problem": address.problem })
    });
    json!({
        "addresses": addresses.collect::<Vec<_>>(),
        "workers": workers.into_iter().map(row).collect::<Vec<_>>(),
        "draining": draining.into_iter().map(row).collect::<Vec<_>>(),
        "resources": resources,
    })
}
