//! Assembles the order with which a process holder starts a program.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use algonius_actors::model::program::UnixUser;
use uuid::Uuid;

use super::program::{ProgramHandle, encode_metadata};
use crate::output::memory_account::MemoryAccount;
use crate::output::program_streams::{ProgramStreams, create_spec_file, create_streams};
use crate::process::process_label::ProcessLabel;
use crate::protocol::frame::{HolderOrder, MAX_FRAME_BYTES};
use crate::protocol::launch_frame::{HoldTerms, LaunchFlags, LaunchSpec};
use crate::{LaunchRequest, identity_variables};

/// Prepared launch.
pub(crate) struct PreparedLaunch {
    pub(crate) program: Arc<ProgramHandle>,
    pub(crate) order: HolderOrder,
    /// Descriptors in the order that the frame defines.
    pub(crate) fds: Vec<Arc<OwnedFd>>,
    /// Supervisor's end of standard input, if that stays open.
    pub(crate) stdin_pipe: Option<OwnedFd>,
}

/// Creates the resources of the program. The program enters its control group through `procs_file`.
///
/// # Errors
/// Fails if the process may not open more files, or memory runs out.
pub(crate) fn prepare_launch(
    launch: LaunchRequest,
    (procs_file, account): (Option<OwnedFd>, MemoryAccount),
    data_dir_id: Uuid,
    program_number: u64,
) -> io::Result<PreparedLaunch> {
    let ProgramStreams { stdin, stdout, stderr, output_fds, stdin_pipe, journaled_stdin } =
        create_streams(&launch.stdin)?;
    let (execution, attempt_id) = (launch.execution, launch.attempt_id);
    let hold_terms = HoldTerms {
        program_number,
        process_label: ProcessLabel::for_attempt(data_dir_id, execution, attempt_id).0,
        metadata: encode_metadata(execution, attempt_id, launch.scratch_slot),
        max_recorded_bytes: launch.max_recorded_bytes,
        ends_with_supervisor: launch.ends_with_supervisor,
    };
    let mut fds: Vec<_> = [stdin, stdout, stderr].into_iter().map(Arc::new).collect();
    fds.extend(output_fds.iter().map(|ends| Arc::clone(&ends.pipe)));
    fds.extend(output_fds.iter().map(|ends| Arc::clone(&ends.memory_file)));
    let flags = LaunchFlags {
        is_confined: launch.ruleset.is_some(),
        has_wrapper_process: launch.wrapper.is_some(),
        has_control_group: procs_file.is_some(),
        has_stdin_journal: journaled_stdin.is_some(),
        network: launch.ruleset.as_ref().map(|ruleset| ruleset.network).unwrap_or_default(),
    };
    let spec = launch_spec(&launch, data_dir_id);
    let ruleset = launch.ruleset.map(|ruleset| ruleset.fd);
    fds.extend(ruleset.into_iter().chain(procs_file.map(Arc::new)));
    let stdin_fds = journaled_stdin.iter().flat_map(|fds| [&fds.pipe, &fds.journal]);
    fds.extend(stdin_fds.map(Arc::clone));
    let encoded = spec.encode();
    let spec = if encoded.len() <= MAX_FRAME_BYTES {
        Some(spec)
    } else {
        fds.push(Arc::new(create_spec_file(&encoded)?));
        None
    };
    let program = Arc::new(
        ProgramHandle::new(hold_terms.clone(), output_fds, account)
            .with_stdin_journal(journaled_stdin),
    );
    Ok(PreparedLaunch {
        program,
        order: HolderOrder::Launch { hold_terms, spec, flags },
        fds,
        stdin_pipe,
    })
}

fn launch_spec(launch: &LaunchRequest, data_dir_id: Uuid) -> LaunchSpec {
    let bytes = |text: &OsStr| text.as_bytes().to_vec();
    let program_name = bytes(launch.program.as_os_str());
    let args = launch.args.iter().map(|arg| arg.clone().into_bytes());
    let args = std::iter::once(program_name).chain(args);
    // A wrapper has a name too, and `--` marks the start of the program's own arguments.
    let wrapper = launch.wrapper.iter().flat_map(|wrapper| {
        let options = wrapper.args.iter().map(OsString::as_os_str).chain([OsStr::new("--")]);
        std::iter::once(wrapper.program.as_os_str()).chain(options).map(bytes)
    });
    let executable = launch.wrapper.as_ref().map_or(&launch.program, |wrapper| &wrapper.program);
    let identity_variables = identity_variables(data_dir_id, launch.execution, launch.attempt_id);
    let identity_variables = identity_variables
        .into_iter()
        .map(|(name, value)| [name.as_bytes(), value.as_bytes()].join(&b'='));
    let env =
        launch.env.iter().map(|(name, value)| [name.as_bytes(), value.as_bytes()].join(&b'='));
    LaunchSpec {
        args: wrapper.chain(args).collect(),
        env: env.chain(identity_variables).collect(),
        program: bytes(executable.as_os_str()),
        working_dir: launch.working_dir.as_os_str().as_bytes().to_vec(),
        limits: launch.rlimits.clone(),
        root_capabilities: launch.root_capabilities,
        user: launch.user.map(|UnixUser { uid, gid }| (uid, gid)),
    }
}
