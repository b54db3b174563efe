//! Looking, and carrying out one move.

use bytes::Bytes;
use notation_edge_api::{ErrorCode, MAX_SEALED_BYTES, Manifest, Resource, client::ClientError};
use notation_provider::{OpContext, OpError};
use serde_json::{Value as Json, json};

use crate::{
    claim::{Claim, NOTE},
    host::{Host, Sent},
    moves::Move,
    parts::{Kind, Slot, claim_name},
    refusal::op_error,
    seen::{InSlot, Part, Seen},
    wanted::Wanted,
};

/// Why a call stops before nothing is left to do.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The host carries on by itself.
    Pending { operation: String, after_ms: u64 },
    /// For the engine.
    Error(OpError),
}

impl From<OpError> for Stop {
    fn from(error: OpError) -> Stop {
        Stop::Error(error)
    }
}

/// Looks at everything whose name follows from the worker's, all at once.
pub(crate) async fn look(host: &Host, script: &str) -> Result<Seen, ClientError> {
    let [a, b] = Slot::BOTH.map(|slot| slot.name(script));
    let claim = claim_name(script);
    let (worker, deployment, endpoint, claim, version_a, bundle_a, version_b, bundle_b) = tokio::try_join!(
        host.get(Kind::Worker, script),
        host.get(Kind::Deployment, script),
        host.get(Kind::Endpoint, script),
        host.get(Kind::Bundle, &claim),
        host.get(Kind::Version, &a),
        host.get(Kind::Bundle, &a),
        host.get(Kind::Version, &b),
        host.get(Kind::Bundle, &b),
    )?;
    let part = |resource: Option<Resource>| resource.as_ref().map(Part::of);
    Ok(Seen {
        claim: match part(claim) {
            None => None,
            Some(part) => Some(read_claim(host, part).await?),
        },
        worker: part(worker),
        deployment: part(deployment),
        endpoint: part(endpoint),
        a: InSlot {
            version: part(version_a),
            bundle: part(bundle_a),
        },
        b: InSlot {
            version: part(version_b),
            bundle: part(bundle_b),
        },
        ..Seen::default()
    })
}

async fn read_claim(host: &Host, part: Part) -> Result<(Part, Claim), ClientError> {
    let manifest = host.manifest(part.manifest_digest()).await?;
    let nobody = Manifest::worker_bundle("", Vec::new());
    let claim = Claim::read(manifest.as_ref().unwrap_or(&nobody));
    Ok((part, claim))
}

/// Everything a move needs.
pub(crate) struct Carrier<'a> {
    pub host: &'a Host,
    pub ctx: &'a OpContext<'a>,
    pub script: &'a str,
}

impl Carrier<'_> {
    /// Carries out one move towards what is wanted, and notes what came of it.
    pub async fn carry(&self, seen: &mut Seen, wanted: &Wanted, next: &Move) -> Result<(), Stop> {
        match next {
            Move::Claim => self.claim(seen, &wanted.claim).await,
            Move::MakeWorker => self.make_worker(seen).await,
            Move::Seal => self.seal(seen, wanted).await,
            Move::MakeBundle(slot) => self.make_bundle(seen, wanted, *slot).await,
            Move::MakeVersion(slot) => {
                let spec = wanted.version_spec(*slot);
                self.make(seen, Kind::Version, Some(*slot), spec).await
            }
            Move::MakeDeployment(slot) => {
                let spec = wanted.deployment_spec(*slot);
                self.make(seen, Kind::Deployment, None, spec).await
            }
            Move::Promote(slot) => self.promote(seen, wanted.deployment_spec(*slot)).await,
            Move::MakeEndpoint => {
                let spec = wanted.endpoint_spec();
                self.make(seen, Kind::Endpoint, None, spec).await
            }
            removal => self.remove(seen, removal).await,
        }
    }

    /// Carries out one move that takes something away, and notes it.
    pub async fn remove(&self, seen: &mut Seen, next: &Move) -> Result<(), Stop> {
        match next {
            Move::Unclaim => self.unclaim(seen).await,
            Move::Unseal(names) => self.unseal(seen, names).await,
            Move::DeleteEndpoint => self.delete(seen, Kind::Endpoint, None).await,
            Move::DeleteDeployment => self.delete(seen, Kind::Deployment, None).await,
            Move::DeleteVersion(slot) => self.delete(seen, Kind::Version, Some(*slot)).await,
            Move::DeleteBundle(slot) => self.delete(seen, Kind::Bundle, Some(*slot)).await,
            Move::DeleteWorker => self.delete(seen, Kind::Worker, None).await,
            Move::Claim
            | Move::MakeWorker
            | Move::Seal
            | Move::MakeBundle(_)
            | Move::MakeVersion(_)
            | Move::MakeDeployment(_)
            | Move::Promote(_)
            | Move::MakeEndpoint => Ok(()),
        }
    }

    async fn claim(&self, seen: &mut Seen, claim: &Claim) -> Result<(), Stop> {
        let digest = self.upload(&claim.manifest()).await?;
        let spec = json!({ "manifestDigest": digest });
        let name = claim_name(self.script);
        let key = self.key("make claim");
        let sent = self.host.put(Kind::Bundle, &name, spec, None, &key).await;
        let part = self.settled(sent)?;
        seen.claim = Some((part, claim.clone()));
        Ok(())
    }

    async fn unclaim(&self, seen: &mut Seen) -> Result<(), Stop> {
        let Some((part, _)) = &seen.claim else {
            return Ok(());
        };
        let key = self.key(&format!("delete claim {}", part.uid));
        let name = claim_name(self.script);
        let sent = self
            .host
            .delete(Kind::Bundle, &name, &part.generation, &key)
            .await;
        self.done(sent)?;
        seen.claim = None;
        Ok(())
    }

    /// A worker that appeared since we looked is somebody else's: our claim goes.
    async fn make_worker(&self, seen: &mut Seen) -> Result<(), Stop> {
        let key = self.key("make ModuleWorker");
        let sent = self
            .host
            .put(Kind::Worker, self.script, json!({}), None, &key)
            .await;
        let taken = match &sent {
            Err(error) => match error.code() {
                Some(ErrorCode::GenerationConflict | ErrorCode::InvalidArgument) => {
                    let found = self.host.get(Kind::Worker, self.script).await;
                    found
                        .map_err(|error| op_error(self.script, error))?
                        .is_some()
                }
                _ => false,
            },
            Ok(_) => false,
        };
        if taken {
            self.unclaim(seen).await?;
            return Err(Stop::Error(OpError::Exists {
                name: self.script.to_owned(),
                tags: std::collections::BTreeMap::new(),
            }));
        }
        seen.worker = Some(self.settled(sent)?);
        Ok(())
    }

    async fn seal(&self, seen: &mut Seen, wanted: &Wanted) -> Result<(), Stop> {
        let client = &self.host.client;
        for (name, value) in &wanted.secrets {
            let bytes = value.0.len();
            if bytes > MAX_SEALED_BYTES {
                return Err(Stop::Error(OpError::Refused {
                    message: format!(
                        "the secret {name} has {bytes} bytes; a host takes values of at most {MAX_SEALED_BYTES}"
                    ),
                }));
            }
            let value = Bytes::copy_from_slice(value.0.as_bytes());
            let sealed = client
                .seal(&self.host.space, self.script, name, value)
                .await;
            sealed.map_err(|error| match op_error(self.script, error) {
                OpError::Refused { message } => OpError::Refused {
                    message: format!("the secret {name} is not taken: {message}"),
                },
                other => other,
            })?;
        }
        seen.sealed = true;
        Ok(())
    }

    async fn unseal(
        &self,
        seen: &mut Seen,
        names: &std::collections::BTreeSet<String>,
    ) -> Result<(), Stop> {
        for name in names {
            let gone = self
                .host
                .client
                .unseal(&self.host.space, self.script, name)
                .await;
            match gone {
                Err(error) if error.code() == Some(ErrorCode::ResourceNotFound) => {}
                gone => gone.map_err(|error| op_error(self.script, error))?,
            }
        }
        seen.unsealed.extend(names.iter().cloned());
        Ok(())
    }

    async fn make_bundle(&self, seen: &mut Seen, wanted: &Wanted, slot: Slot) -> Result<(), Stop> {
        let digest = self.upload(&wanted.manifest()).await?;
        let spec = json!({ "manifestDigest": digest });
        self.make(seen, Kind::Bundle, Some(slot), spec).await
    }

    async fn promote(&self, seen: &mut Seen, spec: Json) -> Result<(), Stop> {
        let Some(now) = &seen.deployment else {
            return Ok(());
        };
        let key = self.key(&format!(
            "promote {} {} {}",
            now.uid,
            now.generation,
            notation_edge_api::digest(&spec)
        ));
        let generation = Some(now.generation.as_str());
        let sent = self
            .host
            .put(Kind::Deployment, self.script, spec, generation, &key)
            .await;
        seen.deployment = Some(self.settled(sent)?);
        Ok(())
    }

    async fn make(
        &self,
        seen: &mut Seen,
        kind: Kind,
        slot: Option<Slot>,
        spec: Json,
    ) -> Result<(), Stop> {
        let name = self.name_of(slot);
        let key = self.key(&format!("make {} {name}", kind.as_str()));
        let sent = self.host.put(kind, &name, spec, None, &key).await;
        *seen.place(kind, slot) = Some(self.settled(sent)?);
        Ok(())
    }

    async fn delete(&self, seen: &mut Seen, kind: Kind, slot: Option<Slot>) -> Result<(), Stop> {
        let place = seen.place(kind, slot);
        let Some(part) = place else { return Ok(()) };
        let key = self.key(&format!("delete {}", part.uid));
        let sent = self
            .host
            .delete(kind, &self.name_of(slot), &part.generation, &key)
            .await;
        self.done(sent)?;
        *place = None;
        Ok(())
    }

    fn name_of(&self, slot: Option<Slot>) -> String {
        slot.map_or_else(|| self.script.to_owned(), |slot| slot.name(self.script))
    }

    /// Makes sure the host has a manifest. Bytes are needed only for blobs it lacks.
    async fn upload(&self, manifest: &Manifest) -> Result<String, Stop> {
        let digest = manifest.digest();
        let error = |error| op_error(self.script, error);
        if self.host.manifest(&digest).await.map_err(error)?.is_some() {
            return Ok(digest);
        }
        let client = &self.host.client;
        // Content-addressed, so repeating is free; replaying an old session would not be.
        let key = self.key(&format!("upload {digest} {}", unique()));
        let started = client.start_upload(manifest, &key).await.map_err(error)?;
        for blob in &started.missing_blobs {
            let bytes = self.blob(manifest, blob)?;
            client
                .upload_blob(&started.upload_id, blob, bytes)
                .await
                .map_err(error)?;
        }
        let key = format!("{key} commit {}", started.upload_id);
        let committed = client
            .commit_upload(&started.upload_id, &key)
            .await
            .map_err(error)?;
        if committed == digest {
            return Ok(digest);
        }
        Err(Stop::Error(OpError::Failed {
            message: format!("the host committed {committed} for {digest}"),
        }))
    }

    fn blob(&self, manifest: &Manifest, digest: &str) -> Result<Bytes, OpError> {
        if digest == notation_edge_api::blob_digest(NOTE) {
            return Ok(Bytes::from_static(NOTE));
        }
        let module = manifest
            .modules
            .iter()
            .flatten()
            .find(|module| module.digest == digest);
        let bytes = module.and_then(|module| {
            self.ctx.assets.bytes(&notation_model::Asset {
                digest: module.digest.clone(),
                size_bytes: module.size,
            })
        });
        match bytes {
            Some(bytes) => Ok(Bytes::copy_from_slice(&bytes)),
            None => Err(OpError::Failed {
                message: format!(
                    "neither the host nor this run has the code {digest}: deploy once with the program that has it"
                ),
            }),
        }
    }

    /// Every change of one intent has a key of its own, the same in every retry.
    fn key(&self, what: &str) -> String {
        format!("notation {} {what}", self.ctx.token)
    }

    fn settled(&self, sent: Result<Sent<Resource>, ClientError>) -> Result<Part, Stop> {
        Ok(Part::of(&self.done(sent)?))
    }

    fn done<T>(&self, sent: Result<Sent<T>, ClientError>) -> Result<T, Stop> {
        match sent.map_err(|error| op_error(self.script, error))? {
            Sent::Done(done) => Ok(done),
            Sent::Pending {
                operation,
                after_ms,
            } => Err(Stop::Pending {
                operation,
                after_ms,
            }),
        }
    }
}

/// A text no other call of any process uses.
fn unique() -> String {
    use std::hash::{BuildHasher as _, Hasher as _, RandomState};
    let random = RandomState::new().build_hasher().finish();
    format!("{}-{random:016x}", std::process::id())
}
