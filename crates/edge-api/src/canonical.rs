//! RFC 8785 canonical form and the digests made of it (host API §4.4, §4.5).

use serde::Serialize;
use sha2::{Digest, Sha256};

/// The RFC 8785 bytes of a document.
///
/// Panics only for documents with non-finite numbers or non-string keys, which no parsed JSON has.
pub fn canonical_bytes<T: Serialize + ?Sized>(document: &T) -> Vec<u8> {
    let value = serde_json::to_value(document).expect("wire documents serialise to JSON");
    serde_json_canonicalizer::to_vec(&value).expect("JSON values have a canonical form")
}

/// `sha256:` and the lowercase hex of SHA-256 over the canonical bytes of `document`.
pub fn digest<T: Serialize + ?Sized>(document: &T) -> String {
    blob_digest(&canonical_bytes(document))
}

/// `sha256:` and the lowercase hex of SHA-256 over raw bytes.
pub fn blob_digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    fn of(text: &str) -> String {
        digest(&parse(text.as_bytes()).expect("test document"))
    }

    #[test]
    fn digests_are_over_the_canonical_form() {
        assert_eq!(
            of("{}"),
            "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        );
        assert_eq!(
            of(r#"{"messageRetentionSeconds":345600,"deliveryDelaySeconds":0}"#),
            "sha256:34bc670798d3ca531125b5439fcd00bf3a1b2dcef081013ae0bda35a727efd3c"
        );
        assert_eq!(
            of(r#"{"vars":{"retries":3,"enabled":true,"label":"x"}}"#),
            "sha256:7bc62dfe4e68caaa789dbd0d79ace9291538779e67bfd4f1222d11b75790170e"
        );
        assert_eq!(
            of(r#"{"a":"é","b":"€"}"#),
            "sha256:39dc1c236cdf84893c4f7e8bb83c43402989703e764719a75cab06c23593a1d8"
        );
    }

    #[test]
    fn numbers_take_the_shortest_form() {
        for (written, canonical) in [
            ("1e21", "1e+21"),
            ("1e20", "100000000000000000000"),
            ("0.000001", "0.000001"),
            ("1e-7", "1e-7"),
            ("1.0", "1"),
            ("333333333.33333329", "333333333.3333333"),
            ("9007199254740993", "9007199254740992"),
        ] {
            let bytes = canonical_bytes(&parse(written.as_bytes()).expect("number"));
            assert_eq!(String::from_utf8(bytes).unwrap(), canonical, "{written}");
        }
    }
}
