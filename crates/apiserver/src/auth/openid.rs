//! How others can check the tokens of service accounts without asking us.

use serde_json::{Value, json};

use crate::Server;

/// Where the keys are, and what is signed with them.
pub(crate) fn configuration(server: &Server, host: &str) -> Value {
    json!({
        "issuer": server.issuer(),
        "jwks_uri": format!("https://{host}/openid/v1/jwks"),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [super::token::ALGORITHM],
    })
}

/// The keys.
pub(crate) fn keys(server: &Server) -> Option<Value> {
    server.signer.as_ref().map(|signer| signer.key_set())
}
