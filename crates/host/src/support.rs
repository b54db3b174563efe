//! Support profiles: what this host promises, in the words of the installed set (host API §24).

use crate::document::wire_form_ref;
use notation_edge::{Catalog, EdgeKind, Form, MAX_BUNDLE_BYTES, MAX_FILES, MAX_MODULES};
use notation_edge_api::{
    BindingRef, BindingSupport, FormSupport, InterfaceRef, InterfaceSupport, SUPPORT_API_VERSION,
};
use std::collections::BTreeMap;

/// Profile of one Form. Limits are the ones manifests are held to.
pub fn form_support(catalog: &Catalog, form: &Form) -> FormSupport {
    let bytes = ("maximumBundleBytes", MAX_BUNDLE_BYTES);
    let (enums, limits): (Option<_>, &[(&str, u64)]) = match kind(form) {
        Some(EdgeKind::WorkerVersion) => {
            let handlers = ("handlers".to_owned(), catalog.handlers().to_vec());
            (Some(BTreeMap::from([handlers])), &[bytes])
        }
        Some(EdgeKind::WorkerBundle) => {
            (None, &[bytes, ("maximumBundleFiles", MAX_MODULES as u64)])
        }
        Some(EdgeKind::StaticAssetBundle | EdgeKind::SQLiteMigrationSet) => {
            (None, &[bytes, ("maximumBundleFiles", MAX_FILES as u64)])
        }
        _ => (None, &[]),
    };
    let limits: BTreeMap<String, u64> = limits
        .iter()
        .map(|(name, limit)| ((*name).to_owned(), *limit))
        .collect();
    FormSupport {
        api_version: SUPPORT_API_VERSION.to_owned(),
        kind: "FormSupport".to_owned(),
        form_ref: wire_form_ref(&form.form_ref),
        operations: form.capabilities.clone(),
        supported_enums: enums,
        limits: (!limits.is_empty()).then_some(limits),
    }
}

fn kind(form: &Form) -> Option<EdgeKind> {
    EdgeKind::of_parts(&form.form_ref.api_version, &form.form_ref.kind)
}

/// Profile of one Interface, if installed.
pub fn interface_support(catalog: &Catalog, name: &str, version: &str) -> Option<InterfaceSupport> {
    let id = &catalog.interface(name, version)?.interface_ref;
    Some(InterfaceSupport {
        api_version: SUPPORT_API_VERSION.to_owned(),
        kind: "InterfaceSupport".to_owned(),
        interface_ref: InterfaceRef {
            api_version: id.api_version.to_string(),
            name: id.name.to_string(),
            version: id.version.to_string(),
            schema_digest: id.schema_digest.to_string(),
        },
    })
}

/// Profile of one Binding, if installed.
pub fn binding_support(catalog: &Catalog, name: &str, version: &str) -> Option<BindingSupport> {
    let id = &catalog.binding(name, version)?.binding_ref;
    Some(BindingSupport {
        api_version: SUPPORT_API_VERSION.to_owned(),
        kind: "BindingSupport".to_owned(),
        binding_ref: BindingRef {
            api_version: id.api_version.to_string(),
            name: id.name.to_string(),
            version: id.version.to_string(),
            schema_digest: id.schema_digest.to_string(),
        },
    })
}
