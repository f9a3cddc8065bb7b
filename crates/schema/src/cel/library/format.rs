//! Formats that have names.

use super::super::value::{Result, Trouble, Val};
use crate::{check_name, is_format, is_request_uri};

/// A format that can be asked for by name.
#[derive(Debug)]
pub(crate) struct Named {
    call: &'static str,
    pub(crate) name: &'static str,
}

static FORMATS: [Named; 13] = [
    Named { call: "dns1123Label", name: "DNS1123Label" },
    Named { call: "dns1123Subdomain", name: "DNS1123Subdomain" },
    Named { call: "dns1035Label", name: "DNS1035Label" },
    Named { call: "qualifiedName", name: "QualifiedName" },
    Named { call: "dns1123LabelPrefix", name: "DNS1123LabelPrefix" },
    Named { call: "dns1123SubdomainPrefix", name: "DNS1123SubdomainPrefix" },
    Named { call: "dns1035LabelPrefix", name: "DNS1035LabelPrefix" },
    Named { call: "labelValue", name: "LabelValue" },
    Named { call: "uri", name: "URI" },
    Named { call: "uuid", name: "uuid" },
    Named { call: "byte", name: "byte" },
    Named { call: "date", name: "date" },
    Named { call: "datetime", name: "datetime" },
];

pub(super) fn named<'a>(name: &str, args: &[Val<'a>]) -> Result<Val<'a>> {
    let find = |wanted: &str| FORMATS.iter().find(|format| format.call == wanted);
    match (name, args) {
        ("format.named", [Val::String(wanted)]) => {
            Ok(find(wanted).map_or(Val::Optional(None), |format| Val::some(Val::Format(format))))
        }
        (_, []) => {
            let call = name.strip_prefix("format.").unwrap_or(name);
            find(call).map(Val::Format).ok_or_else(Trouble::overload)
        }
        _ => Err(Trouble::overload()),
    }
}

/// Nothing if a text has the format, else what is wrong with it.
pub(super) fn validate<'a>(name: &str, format: &Named, args: &[Val<'a>]) -> Result<Val<'a>> {
    let ("validate", [_, Val::String(text)]) = (name, args) else {
        return Err(Trouble::overload());
    };
    let faults = faults(format, text);
    if faults.is_empty() {
        return Ok(Val::Optional(None));
    }
    Ok(Val::some(Val::list(faults.into_iter().map(Val::text).collect())))
}

fn faults(format: &Named, text: &str) -> Vec<String> {
    let unless = |fine: bool, why: &str| if fine { Vec::new() } else { vec![why.to_owned()] };
    match format.call {
        "uri" if is_request_uri(text) => Vec::new(),
        "uri" => vec![format!("parse {}: invalid URI for request", crate::quote(text))],
        "uuid" => unless(is_format("uuid", text), "does not match the UUID format"),
        "byte" => unless(is_format("byte", text), "invalid base64"),
        "date" => unless(is_format("date", text), "invalid date"),
        "datetime" => unless(is_format("datetime", text), "invalid datetime"),
        name => check_name(name, text),
    }
}
