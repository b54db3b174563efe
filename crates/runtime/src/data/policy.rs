//! What a statement of tenant code may do, enforced by SQLite's own authorizer while the
//! statement is prepared.
//!
//! Source: edge runtime contract, "Statement policy". Two things the authorizer does not see
//! are covered elsewhere: `VACUUM` refuses inside a transaction by itself, and the number
//! of statements is counted here.

use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

/// The ledger of applied migrations; no statement may write it.
pub(super) const LEDGER: &str = "_notation_ledger";

/// Whose statements run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    /// Calls through a binding: rows, no schema.
    Runtime,
    /// Migration files: schema, too.
    Migration,
}

/// Holds statements prepared from now on to `policy`.
pub(super) fn apply(connection: &Connection, policy: Policy) -> rusqlite::Result<()> {
    connection.authorizer(Some(move |context: AuthContext<'_>| {
        match allowed(policy, &context.action) {
            true => Authorization::Allow,
            false => Authorization::Deny,
        }
    }))
}

/// The host's own statements again.
pub(super) fn lift(connection: &Connection) -> rusqlite::Result<()> {
    connection.authorizer(None::<fn(AuthContext<'_>) -> Authorization>)
}

fn allowed(policy: Policy, action: &AuthAction<'_>) -> bool {
    match (policy, action) {
        (_, AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive) => true,
        (_, AuthAction::Function { function_name }) => {
            !FORBIDDEN_FUNCTIONS.contains(&function_name.to_ascii_lowercase().as_str())
        }
        (
            Policy::Runtime,
            AuthAction::Insert { table_name }
            | AuthAction::Update { table_name, .. }
            | AuthAction::Delete { table_name },
        ) => !is_ledger(table_name) && !is_internal(table_name),
        (
            Policy::Migration,
            AuthAction::Insert { table_name }
            | AuthAction::Update { table_name, .. }
            | AuthAction::Delete { table_name }
            | AuthAction::DropTable { table_name }
            | AuthAction::AlterTable { table_name, .. }
            | AuthAction::CreateTrigger { table_name, .. }
            | AuthAction::CreateIndex { table_name, .. },
        ) => !is_ledger(table_name),
        // Full-text indexes ask for it by themselves.
        (Policy::Runtime, AuthAction::Pragma { pragma_name, .. }) => *pragma_name == "data_version",
        (Policy::Migration, AuthAction::Pragma { pragma_name, .. }) => {
            READABLE_PRAGMAS.contains(&pragma_name.to_ascii_lowercase().as_str())
        }
        (
            Policy::Migration,
            AuthAction::CreateTable { .. }
            | AuthAction::CreateView { .. }
            | AuthAction::CreateVtable { .. }
            | AuthAction::DropIndex { .. }
            | AuthAction::DropTrigger { .. }
            | AuthAction::DropView { .. }
            | AuthAction::DropVtable { .. }
            | AuthAction::Reindex { .. }
            | AuthAction::Analyze { .. },
        ) => true,
        // Transaction control, attached files, temporary objects, settings, and whatever a
        // later SQLite adds.
        _ => false,
    }
}

const FORBIDDEN_FUNCTIONS: [&str; 4] =
    ["load_extension", "readfile", "writefile", "fts3_tokenizer"];
const READABLE_PRAGMAS: [&str; 8] = [
    "data_version",
    "foreign_key_check",
    "foreign_key_list",
    "defer_foreign_keys",
    "index_info",
    "index_list",
    "table_info",
    "table_xinfo",
];

fn is_ledger(table: &str) -> bool {
    table.eq_ignore_ascii_case(LEDGER)
}

fn is_internal(table: &str) -> bool {
    table
        .get(..7)
        .is_some_and(|start| start.eq_ignore_ascii_case("sqlite_"))
}

/// Whether a text is one statement: after its end, white space and comments may follow, and
/// nothing else. Quotes and comments are read as SQLite reads them; no statement allowed at
/// run time has a `;` inside.
pub(super) fn single(sql: &str) -> Result<(), &'static str> {
    let mut rest = sql.as_bytes();
    let mut tokens = 0;
    let mut ended = false;
    while let Some(&first) = rest.first() {
        let length = match (first, rest.get(1)) {
            (b' ' | b'\t' | b'\n' | b'\r' | 0x0c, _) => 1,
            (b'-', Some(b'-')) => rest
                .iter()
                .position(|byte| *byte == b'\n')
                .unwrap_or(rest.len()),
            (b'/', Some(b'*')) => closing_comment(rest),
            (b';', _) if tokens == 0 || ended => {
                return Err(if ended {
                    "only one statement may be given"
                } else {
                    "there is no statement"
                });
            }
            (b';', _) => {
                ended = true;
                1
            }
            _ if ended => return Err("only one statement may be given"),
            (b'\'' | b'"' | b'`', _) => {
                tokens += 1;
                quoted(rest, first)
            }
            (b'[', _) => {
                tokens += 1;
                rest.iter()
                    .position(|byte| *byte == b']')
                    .map_or(rest.len(), |at| at + 1)
            }
            _ => {
                tokens += 1;
                1
            }
        };
        rest = &rest[length..];
    }
    if tokens == 0 {
        Err("there is no statement")
    } else {
        Ok(())
    }
}

fn closing_comment(text: &[u8]) -> usize {
    text.windows(2)
        .skip(2)
        .position(|pair| pair == b"*/")
        .map_or(text.len(), |at| at + 4)
}

/// Length of a quoted text; a doubled quote stands for itself, which reading two quoted
/// texts in a row comes to.
fn quoted(text: &[u8], quote: u8) -> usize {
    text.iter()
        .skip(1)
        .position(|byte| *byte == quote)
        .map_or(text.len(), |at| at + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_statement_is_told_from_several() {
        for one in [
            "SELECT 1",
            "SELECT 1;",
            " SELECT 1 ; -- end",
            "SELECT ';' AS \";\", `;`, [;] /* ; */ ;/* ; */",
            "SELECT 'it''s; ok'",
            "-- ; first\nSELECT 1",
            "/**/ SELECT 1",
            "SELECT 1 -- no line end",
            "SELECT 4/2",
            "SELECT 1-1",
            "SELECT 'open;",
        ] {
            assert_eq!(single(one), Ok(()), "{one}");
        }
        for none in ["", "  ", "-- only", "/* ; */", ";", "; SELECT 1"] {
            assert_eq!(single(none), Err("there is no statement"), "{none}");
        }
        for several in [
            "SELECT 1; SELECT 2",
            "SELECT 1;;",
            "SELECT 1; x",
            "SELECT ''; SELECT 2",
            "SELECT 1 /*/ ; */; 2",
        ] {
            assert_eq!(
                single(several),
                Err("only one statement may be given"),
                "{several}"
            );
        }
    }
}
