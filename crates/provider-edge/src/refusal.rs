//! Wire errors as the engine understands them: one table.

use notation_edge_api::{ErrorCode, client::ClientError};
use notation_provider::{HeldBy, OpError};

/// What an error of the client means for a call about `script`.
pub(crate) fn op_error(script: &str, error: ClientError) -> OpError {
    let untrusted = error.is_untrusted();
    match error {
        ClientError::Api(error) => {
            let after_ms = error
                .retry_after
                .and_then(|after| u64::try_from(after.as_millis()).ok());
            of_code(script, error.code, &error.message, after_ms)
        }
        ClientError::Transport(error) if untrusted => OpError::Failed {
            message: format!(
                "what answers at the endpoint speaks no TLS, or has no certificate that is trusted \
                 (SSL_CERT_FILE names further roots): {}",
                causes(&error)
            ),
        },
        // A question that cannot be put together is not asked again.
        ClientError::Transport(error) if error.is_builder() => OpError::Failed {
            message: format!("the host cannot be asked: {}", causes(&error)),
        },
        ClientError::Transport(error) => OpError::Transient {
            message: format!("the host cannot be reached: {}", causes(&error)),
            after_ms: None,
        },
        // A proxy's or a dying host's answer: the call can be repeated.
        ClientError::Protocol(message) if message.starts_with("status 5") => OpError::Transient {
            message: format!("the host's answer is not understood: {message}"),
            after_ms: None,
        },
        ClientError::Protocol(message) => OpError::Failed {
            message: format!("the host's answer is not understood: {message}"),
        },
    }
}

/// What a code means, of an answer or of an operation that ended.
pub(crate) fn of_code(
    script: &str,
    code: ErrorCode,
    message: &str,
    after_ms: Option<u64>,
) -> OpError {
    let said = || format!("{message} ({code})");
    match code {
        ErrorCode::DependencyInUse => OpError::InUse {
            held_by: HeldBy(holders(script, message)),
        },
        // Somebody else moved it between our look and our change: looking again helps.
        ErrorCode::GenerationConflict | ErrorCode::RevisionConflict | ErrorCode::UidMismatch => {
            OpError::Transient {
                message: said(),
                after_ms,
            }
        }
        code if code.retryable() => OpError::Transient {
            message: said(),
            after_ms,
        },
        _ => OpError::Refused { message: said() },
    }
}

/// `Kind name` pairs in a sentence of the host, the worker itself left out; the sentence when it
/// has none.
fn holders(script: &str, message: &str) -> Vec<String> {
    let words: Vec<&str> = message
        .split([' ', '/', ','])
        .map(|word| word.trim_matches([';', '.', ':', '`', '"', '(', ')']))
        .filter(|word| !word.is_empty())
        .collect();
    let mut found: Vec<String> = words
        .windows(2)
        .filter(|pair| is_kind(pair[0]) && is_name(pair[1]) && *pair != ["ModuleWorker", script])
        .map(|pair| format!("{} {}", pair[0], pair[1]))
        .collect();
    found.dedup();
    if found.is_empty() {
        found.push(message.to_owned());
    }
    found
}

fn is_kind(word: &str) -> bool {
    let upper = word.chars().filter(char::is_ascii_uppercase).count();
    upper >= 2
        && word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.chars().all(|c| c.is_ascii_alphanumeric())
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase())
        && word
            .chars()
            .all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-'))
}

fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use notation_edge_api::client::ClientError;

    #[tokio::test]
    async fn a_handshake_that_fails_is_not_repeated_and_a_closed_port_is() {
        use tokio::io::AsyncWriteExt;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let plain = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream
                .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                .await
                .unwrap();
        });
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let asked = || async {
            let error = http
                .get(format!("https://{address}/"))
                .send()
                .await
                .unwrap_err();
            op_error("a", ClientError::Transport(error))
        };
        let answer = asked().await;
        assert!(matches!(answer, OpError::Failed { .. }), "{answer:?}");
        // Nobody listens any more.
        plain.await.unwrap();
        let answer = asked().await;
        assert!(matches!(answer, OpError::Transient { .. }), "{answer:?}");
    }

    #[tokio::test]
    async fn a_question_that_cannot_be_put_together_is_not_repeated() {
        let http = reqwest::Client::new();
        let asked = http.get("http://127.0.0.1/").bearer_auth("two\nlines");
        let error = asked.send().await.unwrap_err();
        let answer = op_error("a", ClientError::Transport(error));
        assert!(matches!(answer, OpError::Failed { .. }), "{answer:?}");
    }

    #[test]
    fn holders_are_read_from_the_hosts_sentence() {
        let message = "WorkerVersion b-a relies on ModuleWorker a for handler fetch; WorkerEndpoint a relies on ModuleWorker a for handler fetch";
        let found = of_code("a", ErrorCode::DependencyInUse, message, None);
        let held_by = HeldBy(vec!["WorkerVersion b-a".into(), "WorkerEndpoint a".into()]);
        assert_eq!(found, OpError::InUse { held_by });
    }

    #[test]
    fn every_code_is_repeated_or_not() {
        for code in ErrorCode::ALL {
            match of_code("a", *code, "m", None) {
                OpError::Transient { .. } => assert!(
                    code.retryable()
                        || matches!(
                            code,
                            ErrorCode::GenerationConflict
                                | ErrorCode::RevisionConflict
                                | ErrorCode::UidMismatch
                        )
                ),
                OpError::InUse { .. } => assert_eq!(*code, ErrorCode::DependencyInUse),
                OpError::Refused { .. } => assert!(!code.retryable()),
                other => panic!("{other:?}"),
            }
        }
    }
}
