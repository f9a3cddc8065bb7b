//! System calls that programs of pods are refused: those that lead to what namespaces do not divide.
//!
//! The keys of a session are those of the user who started apron, sockets of virtual machines lead to the machine
//! whatever network a pod is in, and the rest are calls that programs of packages have no use for and the kernel has had its
//! holes in. All of them fail with `EPERM`, as under container engines.

use super::because;
use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};
use std::collections::BTreeMap;

const REFUSED: [libc::c_long; 10] = [
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_syslog,
    // Opens sockets past the rule about those.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Calls of programs with short pointers have other numbers, and do the same.
#[cfg(target_arch = "x86_64")]
const NUMBERINGS: &[libc::c_long] = &[0, 0x4000_0000];
#[cfg(not(target_arch = "x86_64"))]
const NUMBERINGS: &[libc::c_long] = &[0];

/// Has this process, and what it becomes, refused these calls. It has no new privileges by then.
pub(super) fn refuse_calls() -> Result<(), String> {
    let program = write_filter().map_err(because("make a filter of system calls"))?;
    apply_filter(&program).map_err(because("filter system calls"))
}

fn write_filter() -> Result<BpfProgram, seccompiler::BackendError> {
    let vsock = u64::try_from(libc::AF_VSOCK).unwrap_or_default();
    let is_vsock = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, vsock)?;
    let mut rules = BTreeMap::new();
    for numbering in NUMBERINGS {
        for call in REFUSED {
            rules.insert(call | numbering, Vec::new());
        }
        let socket = SeccompRule::new(vec![is_vsock.clone()])?;
        rules.insert(libc::SYS_socket | numbering, vec![socket]);
    }
    let refusal = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let machine = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::Allow, refusal, machine)?.try_into()
}
