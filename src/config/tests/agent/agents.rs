//! Tests of agent rules that depend on the file alone.

use super::*;

#[test]
fn durations_are_seconds_or_text_with_a_unit() {
    for (written, seconds) in
        [("90", 90.0), ("90.5", 90.5), ("\"90s\"", 90.0), ("\"1.5h\"", 5400.0), ("\"5m\"", 300.0)]
    {
        let text = format!("[limits]\ntimeout_max = \"2h\"\n{CAT}timeout = {written}\n");
        let run_timeout = load_settings(&text).agents[0].spec.limits.timeouts.run;
        assert_eq!(run_timeout, Duration::from_secs_f64(seconds), "{written}");
    }
    assert_agent_faults(&[
        (
            "stop_grace = \"50ms\"",
            &["c:3:14: error: agents.a.stop_grace = \"50ms\": must be 0.1 to 60 seconds"],
        ),
        (
            "timeout = \"soon\"",
            &[
                "c:3:11: error: agents.a.timeout = \"soon\": is not a time; write seconds, or text such as `5m`",
            ],
        ),
        ("timeout = nan", &["c:3:11: error: agents.a.timeout = nan: must be 60 to 3600 seconds"]),
        (
            "timeout = 1e300",
            &["c:3:11: error: agents.a.timeout = 1e300: must be 60 to 3600 seconds"],
        ),
        ("timeout = -1", &["c:3:11: error: agents.a.timeout = -1: must be 60 to 3600 seconds"]),
        (
            "timeout = true",
            &[
                "c:3:11: error: agents.a.timeout = true: must be seconds, or text such as `5m`, not true or false",
            ],
        ),
    ]);
}

#[test]
fn an_agent_has_no_idle_timeout_by_default() {
    let idle_timeout =
        |lines: &str| load_settings(&format!("{CAT}{lines}\n")).agents[0].spec.limits.timeouts.idle;
    assert_eq!(idle_timeout(""), None);
    assert_eq!(idle_timeout("idle_timeout = \"2m\""), Some(Duration::from_secs(120)));
    assert_agent_faults(&[
        (
            "idle_timeout = 0",
            &["c:3:16: error: agents.a.idle_timeout = 0: must be 1 to 86400 seconds"],
        ),
        (
            "timeout = 60\nidle_timeout = 60",
            &[
                "c:4:16: warning: agents.a.idle_timeout = 60: means nothing: `timeout` passes before it; lower it, or leave it out",
            ],
        ),
    ]);
}

#[test]
fn limits_move_the_bounds_and_the_defaults_with_them() {
    let run_timeout = |limits: &str| {
        load_settings(&format!("[limits]\n{limits}\n{CAT}")).agents[0].spec.limits.timeouts.run
    };
    assert_eq!(run_timeout("timeout_max = 100").as_secs(), 100);
    assert_eq!(run_timeout("timeout_min = 0.05\ntimeout_max = 0.5"), Duration::from_millis(500));
    assert_eq!(
        fault_messages(&format!("[limits]\ntimeout_min = 9\ntimeout_max = 8\n{CAT}")),
        ["c:2:15: error: limits.timeout_min = 9: must not be more than timeout_max, which is 8"]
    );
}

#[test]
fn a_read_write_agent_has_a_concurrency_of_one() {
    let max_running_limit = |lines: &str| {
        load_settings(&format!("{CAT}{lines}\n")).agents[0].spec.limits.capacity.max_running
    };
    let max_running = |lines: &str| max_running_limit(lines).map(NonZeroU32::get);
    assert_eq!(max_running("access = \"read-write\""), Some(1));
    assert_eq!(max_running("access = \"read-write\"\nmax_concurrent = 1"), Some(1));
    assert_eq!(max_running("max_concurrent = 0"), None);
    assert_agent_faults(&[(
        "access = \"read-write\"\nmax_concurrent = 2",
        &[
            "c:4:18: error: agents.a.max_concurrent = 2: must be 1: an agent with access = \"read-write\" runs alone; leave it out, or make the agent read-only",
        ],
    )]);
}

#[test]
fn an_unknown_preset_is_refused_with_the_known_ones() {
    assert_agent_faults(&[(
        "preset = \"claude\"",
        &[
            "c:3:10: error: agents.a.preset = \"claude\": there is no such preset; known: aider, claude-code, codex, continue, copilot, cursor-agent, gemini, generic, goose, llm, opencode, qwen",
        ],
    )]);
}

#[test]
fn an_unknown_access_or_pattern_is_refused_with_the_known_ones() {
    for access in ["read-only", "read-write"] {
        assert_agent_faults(&[(&format!("access = \"{access}\""), &[])]);
    }
    assert_agent_faults(&[
        (
            "access = \"write\"",
            &[
                "c:3:10: error: agents.a.access = \"write\": must be \"read-only\" or \"read-write\"",
            ],
        ),
        (
            "input = \"pipe\"",
            &[
                "c:3:9: error: agents.a.input = \"pipe\": must be \"stdin\" or \"file\" or \"args\" or \"json-rpc\"",
            ],
        ),
        (
            "output = \"pipe\"",
            &[
                "c:3:10: error: agents.a.output = \"pipe\": must be \"stdout\" or \"file\" or \"events\" or \"claude-stream-json\" or \"codex-jsonl\" or \"gemini-stream-json\" or \"copilot-jsonl\" or \"opencode-jsonl\" or \"json-rpc\"",
            ],
        ),
    ]);
}

#[test]
fn arguments_must_match_the_input_pattern() {
    assert_agent_faults(&[
        ("input = \"args\"\nargs = [\"{{ input }}\"]", &[]),
        ("input = \"file\"\nargs = [\"{{ input_file }}\"]", &[]),
        ("output = \"file\"\nargs = [\"--to={{ output_file }}\"]", &[]),
        ("input = \"file\"\ncli_args = { \"-f\" = \"{{ input_file }}\" }", &[]),
        (
            "input = \"args\"",
            &[
                "c:1:1: error: agents.a.args: `input = \"args\"` needs an argument with `{{ input }}`",
            ],
        ),
        (
            "input = \"file\"",
            &[
                "c:1:1: error: agents.a.args: `input = \"file\"` needs an argument with `{{ input_file }}`",
            ],
        ),
        (
            "output = \"file\"",
            &[
                "c:1:1: error: agents.a.args: `output = \"file\"` needs an argument with `{{ output_file }}`",
            ],
        ),
        (
            "args = [\"{{ input }}\"]",
            &[
                "c:3:9: error: agents.a.args[0]: `{{ input }}` has a value with `input = \"args\"` only",
            ],
        ),
        (
            "args = [\"{{ input_file }}\"]",
            &[
                "c:3:9: error: agents.a.args[0]: `{{ input_file }}` has a value with `input = \"file\"` only",
            ],
        ),
        (
            "args = [\"{{ output_file }}\"]",
            &[
                "c:3:9: error: agents.a.args[0]: `{{ output_file }}` has a value with `output = \"file\"` only",
            ],
        ),
        (
            "input = \"args\"\nargs = [\"{{ inptu }}\"]",
            &[
                "c:4:9: error: agents.a.args[0]: `inptu` is not known to templates; did you mean `input`?",
            ],
        ),
        (
            "input = \"args\"\nargs = [\"{{ input }}\"]\nmax_input_bytes = 200_000",
            &["c:5:19: error: agents.a.max_input_bytes = 200_000: must be 1 to 102400"],
        ),
        (
            "input = \"args\"\nargs = \"{{ input }}\"",
            &["c:4:8: error: agents.a.args: must be a list in brackets, not text"],
        ),
    ]);
}

#[test]
fn file_names_must_not_leave_the_execution_folder() {
    assert_agent_faults(&[
        (
            "output_file = \"sub/x\"",
            &[
                "c:3:15: error: agents.a.output_file = \"sub/x\": must be a file name alone, without `/` and `..`",
            ],
        ),
        (
            "input_file = \"../{{ message_id }}\"",
            &[
                "c:3:14: error: agents.a.input_file = \"../{{ message_id }}\": `message_id` may not stand in the name of a file; allowed: execution_id, agent_id, attempt, turn, timestamp",
                "c:3:14: error: agents.a.input_file = \"../{{ message_id }}\": must be a file name alone, without `/` and `..`",
            ],
        ),
    ]);
}

#[test]
fn command_line_arguments_keep_their_order() {
    let text = format!(
        "{CAT}args = [\"z\", \"a\"]\n[agents.a.cli_args]\n--y = 2\n--b = \"\"\n--c = true\n--d = false\n--a = \"{{{{ param.m }}}}\"\n"
    );
    let args = load_settings(&text).agents[0].program().unwrap().args.clone();
    assert_eq!(args, ["z", "a", "--y", "2", "--b", "--c", "--a", "{{ param.m }}"]);
}

#[test]
fn agent_errors_are_reported() {
    assert_agent_faults(&[
        (
            "[agents.b]\nname = \"a\"\ncommand = \"cat\"",
            &["c:4:8: error: agents.b.name = \"a\": another agent has the name `a`"],
        ),
        ("skills = []", &["c:1:1: error: agents.a.skills: must hold one skill at least"]),
        ("skills = [{ name = \"x\" }]", &["c:3:11: error: agents.a.skills[0].id: is needed"]),
        (
            "skills = [{ id = \"x\" }, { id = \"x\" }]",
            &["c:3:25: error: agents.a.skills[1]: another skill has the id `x`"],
        ),
        (
            "working_dir = \"gone\"",
            &["c:3:15: error: agents.a.working_dir = \"gone\": there is no such folder"],
        ),
        (
            "transient_exit_codes = [300]",
            &[
                "c:3:25: error: agents.a.transient_exit_codes[0] = 300: must be an exit code from 0 to 255",
            ],
        ),
        (
            "transient_regex = \"(\"",
            &[
                "c:3:19: error: agents.a.transient_regex = \"(\": is not a regular expression: unclosed group",
            ],
        ),
        (
            "success = { json_pointer = \"a\" }",
            &[
                "c:3:28: error: agents.a.success.json_pointer = \"a\": must be empty or start with `/`, with `~0` for `~` and `~1` for `/`",
            ],
        ),
        ("retry = { max = 11 }", &["c:3:17: error: agents.a.retry.max = 11: must be 0 to 10"]),
        (
            "retry = { factor = 0.5 }",
            &["c:3:20: error: agents.a.retry.factor = 0.5: must be 1 to 10"],
        ),
        (
            "params = { \"a-b\" = 1 }",
            &[
                "c:3:12: error: agents.a.params.a-b: the name of a parameter has letters, digits and `_` only",
            ],
        ),
        (
            "enabled = \"yes\"",
            &["c:3:11: error: agents.a.enabled: must be true or false, not text"],
        ),
        (
            "description = \" \"",
            &["c:3:15: error: agents.a.description = \" \": must not be empty"],
        ),
        (
            "name = \"a\\u0000\"",
            &["c:3:8: error: agents.a.name = \"a\\u0000\": must not hold a NUL character"],
        ),
    ]);
}

#[test]
fn columns_count_characters() {
    assert_agent_faults(&[(
        "args = [\"é\", 7]",
        &["c:3:14: error: agents.a.args[1] = 7: must be text in quotes, not a whole number"],
    )]);
}

#[test]
fn deduplication_by_content_must_be_configured() {
    let window =
        |lines: &str| load_settings(&format!("{CAT}{lines}")).agents.remove(0).spec.dedup_window;
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    assert_eq!((window(""), window("dedup = \"message\"\n")), (None, None));
    assert_eq!(window("dedup = \"content\"\n"), seconds(60));
    assert_eq!(window("dedup = \"content\"\ndedup_window = \"5m\"\n"), seconds(300));
    assert_agent_faults(&[(
        "dedup_window = 60",
        &[
            "c:3:16: error: agents.a.dedup_window = 60: has a meaning with `dedup = \"content\"` only",
        ],
    )]);
}

#[test]
fn prompt_patterns_have_defaults_and_can_be_configured() {
    let prompts = |lines: &str| {
        let settings = load_settings(&format!("{CAT}{lines}\n"));
        let prompts = &settings.agents[0].program().unwrap().prompt_patterns;
        (prompts.patterns.len(), prompts.silence)
    };
    let two_seconds = Duration::from_secs(2);
    assert_eq!(prompts(""), (5, two_seconds));
    assert_eq!(prompts("interactive_prompts = []"), (0, two_seconds));
    assert_eq!(
        prompts("interactive_prompts = ['> $']\nprompt_silence = 0.5"),
        (1, Duration::from_millis(500))
    );
    assert_agent_faults(&[(
        "interactive_prompts = ['> $', '(']",
        &[
            "c:3:31: error: agents.a.interactive_prompts[1] = '(': is not a regular expression: unclosed group",
        ],
    )]);
}

#[test]
fn a_json_pointer_needs_an_output_that_may_be_a_document() {
    let reason = "agents.a.success.json_pointer: has a meaning only if the output is \"stdout\" or \"file\", without a protocol";
    for (lines, position) in [
        ("output = \"events\"\n", "c:4:24"),
        ("output = \"codex-jsonl\"\n", "c:4:24"),
        ("mode = \"interactive\"\nturn.end_line = \"END\"\n", "c:5:24"),
    ] {
        let lines = format!("{lines}success.json_pointer = \"/a\"");
        assert_agent_faults(&[(&*lines, &[&*format!("{position}: error: {reason}")])]);
    }
}
