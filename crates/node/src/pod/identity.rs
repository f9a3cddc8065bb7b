//! The user of a container's program, and the rights that no container gets here.

use super::{find_container, pod_title};
use crate::protocol::ProcessUser;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};

/// What a pod may have beyond its own files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allowances {
    /// Paths of the machine in volumes.
    pub host_path: bool,
}

/// Why a container is not run at all; nothing, if it may be.
pub fn refuse_rights(spec: &PodSpec, container: &Container) -> Option<String> {
    let shared = [
        (spec.host_network, "hostNetwork"),
        (spec.host_pid, "hostPID"),
        (spec.host_ipc, "hostIPC"),
    ];
    if let Some((_, name)) = shared.iter().find(|(said, _)| *said == Some(true)) {
        return Some(format!("{name} is not allowed: pods have namespaces of their own here"));
    }
    if spec.share_process_namespace == Some(true) {
        let why =
            "shareProcessNamespace is not supported: each container has processes of its own here";
        return Some(why.to_owned());
    }
    let of_pod = spec.security_context.as_ref().and_then(|it| it.sysctls.as_deref());
    if let Some(first) = of_pod.and_then(<[_]>::first) {
        return Some(format!("sysctls are not supported here, and this pod sets {}", first.name));
    }
    let context = container.security_context.as_ref()?;
    if context.privileged == Some(true) {
        return Some("privileged containers are not allowed here".to_owned());
    }
    let added = context.capabilities.as_ref().and_then(|all| all.add.as_ref());
    let added = added.filter(|names| !names.is_empty())?;
    Some(format!("containers get no capabilities here, and this one adds {}", added.join(", ")))
}

/// The user of a container's program. `image_user` is what the image says (`nonroot:nonroot`), and
/// `resolve` finds the numbers and groups of a name or number in the image.
pub fn choose_user(
    pod: &Pod,
    container: &Container,
    image_user: &str,
    resolve: &dyn Fn(&str) -> Result<ProcessUser, String>,
) -> Result<ProcessUser, String> {
    let spec = pod.spec.as_ref();
    let of_pod = spec.and_then(|spec| spec.security_context.as_ref());
    let own = container.security_context.as_ref();
    let wished = own.and_then(|it| it.run_as_user).or(of_pod.and_then(|it| it.run_as_user));
    let group = own.and_then(|it| it.run_as_group).or(of_pod.and_then(|it| it.run_as_group));
    let not_root =
        own.and_then(|it| it.run_as_non_root).or(of_pod.and_then(|it| it.run_as_non_root));
    if not_root == Some(true)
        && let Some(why) = breaks_non_root(wished, image_user)
    {
        let title = pod_title(pod);
        return Err(format!("{why} (pod: {title:?}, container: {})", container.name));
    }
    let named = match wished {
        Some(uid) => uid.to_string(),
        None => image_user.to_owned(),
    };
    let mut user = resolve(&named)?;
    if let Some(gid) = group {
        user.gid = number(gid, "runAsGroup")?;
    }
    let further = of_pod.and_then(|it| it.supplemental_groups.clone()).unwrap_or_default();
    let volumes = of_pod.and_then(|it| it.fs_group);
    for gid in further.into_iter().chain(volumes) {
        let gid = number(gid, "supplementalGroups")?;
        if !user.groups.contains(&gid) {
            user.groups.push(gid);
        }
    }
    Ok(user)
}

fn number(value: i64, field: &str) -> Result<u32, String> {
    u32::try_from(value).map_err(|_| format!("{field} {value} is no group"))
}

/// Why this is root or might be; nothing, if it is not. A name says nothing about its number.
fn breaks_non_root(wished: Option<i64>, image_user: &str) -> Option<String> {
    let name = image_user.split(':').next().unwrap_or_default();
    match wished {
        Some(0) => Some("container's runAsUser breaks non-root policy".to_owned()),
        Some(_) => None,
        None => match name.parse::<u32>() {
            Ok(0) => Some("container has runAsNonRoot and image will run as root".to_owned()),
            Ok(_) => None,
            Err(_) if name.is_empty() => {
                Some("container has runAsNonRoot and image will run as root".to_owned())
            }
            Err(_) => Some(format!(
                "container has runAsNonRoot and image has non-numeric user ({name}), cannot verify user is non-root"
            )),
        },
    }
}

/// The group that owns the files of a pod's volumes.
pub fn volume_group(pod: &Pod) -> Option<u32> {
    let context = pod.spec.as_ref()?.security_context.as_ref()?;
    u32::try_from(context.fs_group?).ok()
}

/// Whether this container of the pod may only read its file system.
pub fn is_read_only(spec: &PodSpec, name: &str) -> bool {
    let container = find_container(spec, name);
    let context = container.and_then(|one| one.security_context.as_ref());
    context.and_then(|it| it.read_only_root_filesystem).unwrap_or(false)
}
