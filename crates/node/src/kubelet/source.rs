//! What a pod refers to, fetched: Secrets, config maps and tokens of its account.

use super::Station;
use super::services::named_services;
use crate::pod::volume::list_sources;
use crate::pod::{PodSources, TokenWish};
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, PodSpec, Secret, ServiceAccount};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::Api;
use kube::api::PostParams;
use std::collections::BTreeMap;

/// A token, and when it is renewed.
pub(crate) struct HeldToken {
    token: String,
    renew_at: Timestamp,
}

/// Tokens that a pod has.
pub(crate) type HeldTokens = BTreeMap<TokenWish, HeldToken>;

/// Fetches all that a pod refers to, as far as it is there.
pub(crate) async fn gather_sources(
    station: &Station,
    pod: &Pod,
    spec: &PodSpec,
    held: &mut HeldTokens,
) -> Result<PodSources, String> {
    let namespace = pod.metadata.namespace.clone().unwrap_or_default();
    let names = list_sources(spec);
    let mut sources =
        PodSources { services: named_services(station, &namespace), ..PodSources::default() };
    let secrets: Api<Secret> = Api::namespaced(station.client.clone(), &namespace);
    for name in names.secrets {
        let found = secrets.get_opt(&name).await.map_err(|error| error.to_string())?;
        sources.secrets.extend(found.map(|found| (name, found)));
    }
    let maps: Api<ConfigMap> = Api::namespaced(station.client.clone(), &namespace);
    for name in names.config_maps {
        let found = maps.get_opt(&name).await.map_err(|error| error.to_string())?;
        sources.config_maps.extend(found.map(|found| (name, found)));
    }
    for wish in names.tokens {
        let token = hold_token(station, pod, spec, &wish, held).await?;
        sources.tokens.insert(wish, token);
    }
    Ok(sources)
}

/// The token of a pod's account, renewed after four fifths of its time.
async fn hold_token(
    station: &Station,
    pod: &Pod,
    spec: &PodSpec,
    wish: &TokenWish,
    held: &mut HeldTokens,
) -> Result<String, String> {
    let now = Timestamp::now();
    if let Some(one) = held.get(wish).filter(|one| one.renew_at > now) {
        return Ok(one.token.clone());
    }
    match request_token(station, pod, spec, wish, now).await {
        Ok(made) => {
            let token = made.token.clone();
            held.insert(wish.clone(), made);
            Ok(token)
        }
        // What is old is better than nothing; the next look tries again.
        Err(why) => held.get(wish).map(|one| one.token.clone()).ok_or(why),
    }
}

async fn request_token(
    station: &Station,
    pod: &Pod,
    spec: &PodSpec,
    wish: &TokenWish,
    now: Timestamp,
) -> Result<HeldToken, String> {
    let namespace = pod.metadata.namespace.clone().unwrap_or_default();
    let account = spec.service_account_name.as_deref().filter(|name| !name.is_empty());
    let account = account.unwrap_or("default");
    let request = TokenRequest {
        spec: Some(TokenRequestSpec {
            audiences: Some(wish.audience.clone().into_iter().collect()),
            bound_object_ref: Some(BoundObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Pod".to_owned()),
                name: pod.metadata.name.clone(),
                uid: pod.metadata.uid.clone(),
            }),
            expiration_seconds: Some(wish.seconds),
        }),
        ..TokenRequest::default()
    };
    let accounts: Api<ServiceAccount> = Api::namespaced(station.client.clone(), &namespace);
    let made = accounts.create_token_request(account, &PostParams::default(), &request).await;
    let made = made.map_err(|error| format!("failed to fetch token: {error}"))?;
    let status = made.status.ok_or("failed to fetch token: there is none in the answer")?;
    let end = status.expiration_timestamp.map(|time| time.0);
    let lasts = end.map_or(SignedDuration::from_secs(wish.seconds), |end| end.duration_since(now));
    let renew_in = lasts.saturating_mul(4).checked_div(5).unwrap_or(SignedDuration::ZERO);
    let renew_at = now.checked_add(renew_in).unwrap_or(now);
    let token = status.token.ok_or("failed to fetch token: there is none in the answer")?;
    Ok(HeldToken { token, renew_at })
}
