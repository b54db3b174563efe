//! What a host is set up with, and what is wrong with that.

use std::{sync::Arc, time::Duration};

use notation_host::{ArtifactStore, Bucket, HostConfig, OpenError, StoreError, Tls};
use notation_runtime::connections_that_fit;

use super::{folder::Folder, start::way_out};
use crate::{
    args::Serve,
    exit::Exit,
    failure::{Failure, causes},
};

/// The set-up of a host by its flags.
pub fn config(args: &Serve, folder: &Folder) -> Result<HostConfig, Failure> {
    let limits = &args.limits;
    let fit = connections_that_fit();
    if fit < limits.max_connections {
        tracing::info!(
            wanted = limits.max_connections,
            fit,
            "connections are limited by the open files that the system allows (RLIMIT_NOFILE)"
        );
    }
    let mut config = HostConfig {
        contracts: args.contracts.clone(),
        endpoint_domain: args.endpoint_domain.clone(),
        public_origin: args.public_origin.clone(),
        artifacts: args.artifacts.as_deref().map(bucket).transpose()?,
        max_requests: limits.max_requests,
        max_connections: limits.max_connections.min(fit),
        max_body_bytes: limits.max_body_bytes,
        max_head_bytes: limits.max_head_bytes,
        read_timeout: limits.read_timeout,
        body_timeout: limits.body_timeout,
        grace: limits.grace,
        keep_records: Duration::from_secs(u64::from(limits.keep_days) * 86_400),
        ..HostConfig::new(folder.data())
    };
    if let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) {
        config.tls = Some(Tls {
            certificate: certificate.clone(),
            key: key.clone(),
        });
    }
    Ok(match &args.conformance {
        Some(contract) => config.with_conformance(contract),
        None => config,
    })
}

fn bucket(url: &str) -> Result<Arc<dyn ArtifactStore>, Failure> {
    match Bucket::at(url) {
        Ok(bucket) => Ok(Arc::new(bucket)),
        Err(error) => Err(causes(&error)
            .into_iter()
            .fold(
                Failure::new(Exit::Usage, "host::arguments", error.to_string()),
                Failure::also,
            )
            .help("give s3://BUCKET/PREFIX; region, endpoint and credentials come from AWS_REGION, AWS_ENDPOINT, AWS_ACCESS_KEY_ID and so on")),
    }
}

/// What must not be listened on, whatever else is said.
pub fn reachable(args: &Serve) -> Result<(), Failure> {
    let refused = |message: String, help: &str| {
        Err(Failure::new(Exit::Usage, "host::arguments", message).help(help))
    };
    let listen = args.listen;
    if args.conformance.is_some() && !listen.ip().is_loopback() {
        return refused(
            format!(
                "a host with the conformance adapter is served on loopback only, not on {listen}"
            ),
            "leave --conformance away, or listen on 127.0.0.1",
        );
    }
    if args.tls_cert.is_none() && !listen.ip().is_loopback() {
        return refused(
            format!("{listen} is not loopback, and tokens would cross the network in the clear"),
            "give a certificate with --tls-cert and --tls-key, or listen on 127.0.0.1 behind a proxy that speaks TLS",
        );
    }
    if !args.status.ip().is_loopback() {
        return refused(
            format!(
                "the status page shows every tenant and is served on loopback only, not on {}",
                args.status
            ),
            "listen on 127.0.0.1, and look from elsewhere through a tunnel such as `ssh -L`",
        );
    }
    Ok(())
}

/// Why a host cannot be opened, with the way out.
pub fn not_opened(error: &OpenError, args: &Serve, folder: &Folder) -> Failure {
    let fixable = |code: &'static str| Failure::new(Exit::Fixable, code, error.to_string());
    match error {
        OpenError::Contracts(reasons) => {
            let failure = Failure::new(
                Exit::Fixable,
                "host::contracts",
                "the contract set cannot be installed",
            );
            reasons
                .lines()
                .into_iter()
                .fold(failure, Failure::also)
                .help("complete the set from where it was published; every document must have the digest its index says")
        }
        OpenError::OtherContracts { .. } => fixable("host::other_contracts").help(match &args.contracts {
            Some(_) => "serve with the set they were made under (--contracts DIR), or leave --contracts away when it was the built-in one".to_owned(),
            None => format!(
                "start the version of notation that made them, run `notation destroy` for every deployment there, then start this one; \
                 or give all of it up, with what its workers stored: remove {} and deploy again",
                folder.path().display()
            ),
        }),
        OpenError::Store(StoreError::Newer { path, known, .. }) => {
            let copy = path.with_extension(format!("format-{known}.sqlite"));
            fixable("host::newer_data").help(if copy.exists() {
                format!(
                    "start the newer version of notation; or go back to how it was before the upgrade, losing what was deployed since: \
                     put {} in the place of {} (remove the files ending in -wal and -shm beside it)",
                    copy.display(),
                    path.display()
                )
            } else {
                "start the newer version of notation that used this folder, or put back the backup from before the upgrade".to_owned()
            })
        }
        OpenError::OtherKey { path, .. } => fixable("host::other_key").help(format!(
            "put the {} back that was in use when the values were set, for example from the backup of this folder",
            path.display()
        )),
        OpenError::Tls(_) => fixable("host::tls")
            .help("give a PEM file with the certificate chain, the host's own first, and the PEM file of its private key"),
        OpenError::EndpointDomain(_) => {
            Failure::new(Exit::Usage, "host::arguments", error.to_string())
                .help("give a name like workers.example with --endpoint-domain")
        }
        OpenError::DataDir { source, .. } => causes(error)
            .into_iter()
            .fold(fixable("host::no_data"), Failure::also)
            .help(way_out(source.kind())),
        OpenError::Store(StoreError::Database { .. }) => fixable("host::no_data")
            .help("if the file is damaged, put the folder back from its backup; otherwise make it usable for this user, with room on its disk"),
        OpenError::InUse { .. } | OpenError::Store(_) => {
            with_causes(fixable("host::no_data"), error)
        }
    }
}

/// A failure with its causes, where the folder is at fault.
pub fn with_causes(failure: Failure, error: &dyn std::error::Error) -> Failure {
    causes(error)
        .into_iter()
        .fold(failure, Failure::also)
        .help("make the named folder usable for this user, or give another one with --data")
}
