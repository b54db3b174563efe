//! What a running host answers to the command line: one question per connection.

use std::{collections::BTreeMap, io, sync::Arc, time::Duration};

use notation_host::{Grant, Host, Scope, TokenRecord};
use notation_runtime::State;
use serde_json::{Value as Json, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    sync::watch,
};

use super::{
    control::{Ask, Question},
    plane::Plane,
};

/// Answers until the listener fails or the process ends.
pub async fn answer_all(
    listener: TcpListener,
    secret: String,
    host: Host,
    plane: Arc<Plane>,
    stop: watch::Sender<bool>,
) {
    while let Ok((stream, _)) = listener.accept().await {
        let (secret, host, plane, stop) =
            (secret.clone(), host.clone(), plane.clone(), stop.clone());
        tokio::spawn(async move {
            let answered = answer(stream, &secret, &host, &plane, &stop);
            // An asker that says nothing is not waited for.
            let _ = tokio::time::timeout(Duration::from_secs(10), answered).await;
        });
    }
}

async fn answer(
    stream: TcpStream,
    secret: &str,
    host: &Host,
    plane: &Plane,
    stop: &watch::Sender<bool>,
) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let question: Question = serde_json::from_str(&line).map_err(io::Error::other)?;
    if question.secret != secret {
        return Ok(());
    }
    let stops = question.ask == Ask::Stop;
    let answer = match question.ask {
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
            match host.create_token(grant).await {
                Ok((record, text)) => json!({ "token": token_row(&record), "text": text }),
                Err(error) => json!({ "error": error.to_string() }),
            }
        }
        Ask::ListTokens => {
            json!({ "tokens": host.tokens().iter().map(token_row).collect::<Vec<_>>() })
        }
        Ask::RevokeToken { id } => match host.revoke_token(&id).await {
            Ok(revoked) => json!({ "revoked": revoked }),
            Err(error) => json!({ "error": error.to_string() }),
        },
    };
    stream.write_all(format!("{answer}\n").as_bytes()).await?;
    stream.flush().await?;
    if stops {
        stop.send_replace(true);
    }
    Ok(())
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
            "state": state_name(version.state),
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

fn state_name(state: State) -> &'static str {
    match state {
        State::Cold => "cold",
        State::Starting { .. } | State::LastStart => "starting",
        State::Warm { .. } => "serving",
        State::BackOff { .. } => "failing",
        State::Draining => "draining",
        State::Stopping => "stopping",
        State::Stopped => "stopped",
    }
}
