//! Every error code has a test that provokes it, or is one this host never gives.

use super::{is_tested, sources};
use notation_edge_api::ErrorCode;
use std::path::Path;

/// How a code is covered.
enum Shown {
    /// A test with this name is refused with it and accepted beside it.
    By(&'static str),
    /// The host never gives it, only the adapter's probe does. Why.
    Never(&'static str),
}

fn shown(code: ErrorCode) -> Shown {
    use Shown::{By, Never};
    match code {
        ErrorCode::InvalidArgument => By("apply_headers_required"),
        ErrorCode::ArtifactInvalid => By("bundle_main_module_is_loadable"),
        ErrorCode::Unauthenticated => By("unauthenticated_request_refused"),
        ErrorCode::PermissionDenied => By("sealed_values_need_a_scope_of_their_own"),
        ErrorCode::PolicyDenied => Never("the host has no policy beside rules and scopes"),
        ErrorCode::FormUnknown => By("exact_form_ref_fails_closed_on_unknown_definition"),
        ErrorCode::ResourceNotFound => By("relation_target_missing_rejected"),
        ErrorCode::OperationNotFound => By("operation_bound_to_its_creating_principal"),
        ErrorCode::ArtifactMissing => By("manifest_reference_is_not_a_capability"),
        ErrorCode::FormNotInstalled
        | ErrorCode::FormUnavailable
        | ErrorCode::FormIdentityConflict => Never("what is not installed is unknown"),
        ErrorCode::ResourceBusy => Never("mutations of a tenant wait for each other"),
        ErrorCode::ImportConflict => By("import_claims_its_native_identity"),
        ErrorCode::DependencyInUse => By("dependency_in_use_on_bound_target_delete"),
        ErrorCode::DeletionProtected => Never("the host has no policy beside rules and scopes"),
        ErrorCode::OperationCancelled => By("operation_cancel"),
        ErrorCode::MigrationRequired => By("applied_migrations_stay_the_beginning_of_every_list"),
        ErrorCode::UidMismatch => By("expected_uid_mismatch_rejected"),
        ErrorCode::GenerationConflict => By("observe_fence_exact"),
        ErrorCode::RevisionConflict => By("delete_fence_survives_derived_rendering"),
        ErrorCode::UnsupportedCapability => By("handler_gated_attachments"),
        ErrorCode::RateLimited => By("too_many_requests_at_once_are_told_to_come_again"),
        ErrorCode::InternalError => By("a_failure_inside_the_host_ends_one_request_only"),
        ErrorCode::BackendUnavailable => {
            By("bytes_that_are_gone_are_told_and_nothing_is_half_done")
        }
        ErrorCode::DeadlineExceeded => By("slow_senders_do_not_hold_the_host"),
    }
}

#[test]
fn every_code_is_shown_or_never_given() {
    let sources = sources();
    let code_of_the_host = host_sources();
    for code in ErrorCode::ALL {
        let given = code_of_the_host.contains(&format!("ErrorCode::{code:?}"));
        match shown(*code) {
            Shown::By(test) => {
                assert!(is_tested(&sources, test), "{code}: there is no test {test}");
                let quoted = format!("\"{code}\"");
                let provokes = sources.iter().any(|source| {
                    source.contains(&format!("async fn {test}()")) && source.contains(&quoted)
                });
                assert!(provokes, "{code} does not occur beside {test}");
                assert!(given, "{code} is shown and the host never gives it");
            }
            Shown::Never(why) => assert!(!given, "{code} is given, although {why}"),
        }
    }
}

/// The text of the crate itself.
fn host_sources() -> String {
    fn walk(dir: &Path, text: &mut String) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, text);
            } else {
                text.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    let mut text = String::new();
    walk(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut text,
    );
    text
}
