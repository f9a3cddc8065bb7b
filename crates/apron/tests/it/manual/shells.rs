//! What shells and `man` are told of apron.

use crate::support::{Scratch, apron, program};

#[test]
fn every_shell_gets_a_script_that_knows_all_commands() {
    let scratch = Scratch::new();
    for shell in ["bash", "elvish", "fish", "nushell", "powershell", "zsh"] {
        let script = apron(&scratch, ["completion", shell]).ok().stdout;
        for word in ["rollback", "exit-when-ready", "scrub"] {
            assert!(script.contains(word), "{shell} is not told of {word}");
        }
    }
    let script = apron(&scratch, ["completion", "bash"]).ok().stdout;
    scratch.write("apron.bash", script);
    program(&scratch, "bash", ["-n", "apron.bash"]).ok();
    // What bash offers after the word.
    let ask = "source apron.bash; COMP_WORDS=(apron roll); COMP_CWORD=1; _apron apron roll apron; \
               echo \"${COMPREPLY[@]}\"";
    let offered = program(&scratch, "bash", ["-c", ask]).ok().stdout;
    assert_eq!(offered.trim(), "rollback");
}

#[test]
fn every_command_has_a_manual_page() {
    let scratch = Scratch::new();
    apron(&scratch, ["man", "share/man1"]).ok();
    let reference = super::reference::commands_page();
    let commands = reference.lines().filter_map(|line| line.strip_prefix("## apron"));
    let mut count = 0;
    for words in commands {
        let name = format!("apron{}.1", words.replace(' ', "-"));
        let page = fs_err::read_to_string(scratch.join("share/man1").join(&name));
        let page = page.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(page.contains(".SH SYNOPSIS"), "{name} does not say how it is called");
        count += 1;
    }
    assert!(count > 40, "only {count} commands are in the reference");
    let again = scratch.join("again");
    apron(&scratch, ["man", again.to_str().unwrap()]).ok();
    let same = program(&scratch, "diff", ["-r", "share/man1", "again"]);
    assert_eq!(same.code, Some(0), "the same words give other pages");
}
