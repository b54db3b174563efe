//! Coverage by list: every observation of a conformance run has a test of its name; every route
//! and every error code is refused and accepted somewhere. Breaches have their list in `rules`.

mod codes;
mod routes;

use std::path::Path;

/// Names of the observations.
const CHECKS: [&str; 116] = [
    "discovery-exact",
    "unauthenticated-request-refused",
    "forms-exact-availability",
    "form-definition-exact",
    "validate-accepts-canonical",
    "validate-rejects-negative-fixtures",
    "prepare-binds-exact-spec",
    "prepare-substitution-rejected",
    "apply-create-uid-minted",
    "apply-headers-required",
    "apply-idempotency-replay",
    "replay-record-retires-with-its-incarnation",
    "create-conflict-when-exists",
    "update-generation-fence",
    "stale-generation-rejected",
    "revision-etag-exact",
    "observe-fence-exact",
    "status-change-bumps-revision-not-generation",
    "spec-change-bumps-generation",
    "delete-generation-fence",
    "delete-revision-fence",
    "stale-revision-rejected",
    "delete-then-recreate-uid-changes",
    "expected-uid-mismatch-rejected",
    "package-digest-not-identity",
    "same-kind-two-groups",
    "revision-role-update-rejected",
    "no-update-spec-change-rejected",
    "binding-target-missing-404-before-mutation",
    "dependency-in-use-on-bound-target-delete",
    "relation-target-missing-rejected",
    "relation-target-deletion-blocked",
    "relation-incarnation-change-detected",
    "relation-reapply-repins",
    "binding-contract-verified",
    "async-operation-flow",
    "operation-replay-terminal",
    "operation-resumable-after-settlement",
    "operation-cancel",
    "exact-form-ref-fails-closed-on-unknown-definition",
    "artifact-upload-missing-blob",
    "artifact-digest-mismatch",
    "artifact-commit-idempotent",
    "artifact-then-bundle-apply",
    "support-profiles-present",
    "error-envelope-taxonomy",
    "cross-space-isolation",
    "cross-principal-idempotency-isolation",
    "prepare-requires-update-fence",
    "stale-prepare-rejected",
    "condition-reason-closed",
    "space-id-grammar-enforced",
    "concurrent-unrelated-mutation",
    "async-commit-revalidates",
    "async-commit-binds-the-accepted-identity",
    "import-adopts-native-resource",
    "import-validates-like-apply",
    "import-claims-its-native-identity",
    "import-records-its-native-identity",
    "deployment-weight-sum-enforced",
    "deployment-single-active-per-worker",
    "deployment-version-ownership",
    "deployment-version-duplicate-rejected",
    "attachment-requires-active-deployment",
    "handler-gated-attachments",
    "binding-name-collision-rejected",
    "deployment-change-preserves-dependents",
    "deployment-delete-blocked-by-dependent",
    "deployment-delete-blocked-by-inbound-binding",
    "dependent-revision-advances-with-rendering",
    "delete-fence-survives-derived-rendering",
    "artifact-manifest-reject-list",
    "artifact-commit-binds-declared-size",
    "artifact-manifest-kind-exclusive",
    "bundle-main-module-is-loadable",
    "artifact-retention-while-referenced",
    "namespaced-group-travels-as-two-path-segments",
    "operation-bound-to-its-creating-principal",
    "upload-session-bound-to-its-creating-principal",
    "artifact-digest-is-not-a-capability",
    "manifest-reference-is-not-a-capability",
    "static-asset-spa-paths",
    "sqlite-migration-ledger-readiness",
    "module-worker-runtime-contract-advertised",
    "undeclared-runtime-handler-rejected",
    "declared-handler-not-exported-rejected",
    "edge-interface-contracts-advertised",
    "cron-grammar-enforced",
    "queue-single-consumer-enforced",
    "custom-domain-hostname-canonicalized",
    "custom-domain-hostname-claim-unique",
    "custom-domain-hostname-claim-stops-at-the-tenant",
    "dead-letter-cycle-rejected",
    "attachment-claim-decided-on-import",
    "attachment-claim-revalidated-at-commit",
    "custom-domain-u-label-refused",
    "two-definition-versions-answer-independently",
    "resource-answers-only-under-its-recorded-form-ref",
    "relation-target-form-ref-verified",
    "relation-target-interface-verified",
    "relation-pin-records-target-form-ref",
    "worker-endpoint-address-is-host-assigned",
    "worker-endpoint-single-per-worker",
    "worker-endpoint-follows-the-active-deployment",
    "worker-endpoint-address-is-stable-for-its-uid",
    "form-declared-outputs-are-exact",
    "resource-address-is-tenant-scoped",
    "resource-read-is-tenant-isolated",
    "resource-observe-is-tenant-isolated",
    "resource-update-is-tenant-isolated",
    "resource-import-is-tenant-isolated",
    "resource-delete-is-tenant-isolated",
    "relation-resolution-is-tenant-scoped",
    "prepare-is-tenant-scoped",
    "idempotency-is-tenant-scoped",
    "each-tenant-mutates-its-own-plane",
];

/// The nine rules of decision 0016 with the tests that show both directions of each.
const DECISION_0016: [(&str, &[&str]); 9] = [
    (
        "one active deployment per worker",
        &["deployment_single_active_per_worker"],
    ),
    (
        "deployment integrity",
        &[
            "deployment_weight_sum_enforced",
            "deployment_version_ownership",
            "deployment_version_duplicate_rejected",
            "a_version_that_is_not_ready_or_leaving_takes_no_traffic",
        ],
    ),
    (
        "attachments need what the active deployment serves",
        &[
            "attachment_requires_active_deployment",
            "handler_gated_attachments",
        ],
    ),
    (
        "the same gate in reverse on every deployment change",
        &["deployment_change_preserves_dependents"],
    ),
    (
        "service bindings reach serving workers only",
        &["attachment_requires_active_deployment"],
    ),
    (
        "readiness follows the deployment",
        &["dependent_revision_advances_with_rendering"],
    ),
    (
        "one environment namespace",
        &["binding_name_collision_rejected"],
    ),
    (
        "dependents block the deletion of a deployment",
        &[
            "deployment_delete_blocked_by_dependent",
            "deployment_delete_blocked_by_inbound_binding",
            "refusals_take_a_whole_worker_apart",
        ],
    ),
    (
        "renderings move revisions and never generations",
        &[
            "dependent_revision_advances_with_rendering",
            "delete_fence_survives_derived_rendering",
        ],
    ),
];

#[test]
fn every_rule_of_decision_0016_is_shown() {
    let sources = sources();
    for (rule, tests) in DECISION_0016 {
        for test in tests {
            assert!(is_tested(&sources, test), "{rule}: there is no test {test}");
        }
    }
}

/// The text of every test file of this suite.
fn sources() -> Vec<String> {
    fn walk(dir: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else {
                found.push(std::fs::read_to_string(path).unwrap());
            }
        }
    }
    let mut found = Vec::new();
    walk(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/host"),
        &mut found,
    );
    found
}

/// Whether a test of this name exists.
fn is_tested(sources: &[String], name: &str) -> bool {
    let test = format!("async fn {name}()");
    sources.iter().any(|source| source.contains(&test))
}

#[test]
fn every_observation_has_a_test_of_its_name() {
    let sources = sources();
    for check in CHECKS {
        let name = check.replace('-', "_");
        assert!(is_tested(&sources, &name), "{check} has no test");
    }
}
