//! The files of settings: where a failing disk hides one, and how often they are read. The rest is in the transcripts.

use std::fs;

use crate::conversations::stored;
use crate::fixtures::case;
use crate::machine::lacks;
use crate::sandbox::Sandbox;
use crate::server::Server;

#[test]
fn a_configuration_file_that_a_failing_disk_hides_does_not_count_as_missing() {
    if lacks("strace", "strace -o /dev/null true") {
        return;
    }
    let server = Server::openai("never");
    let sandbox = Sandbox::new().server_env(&server);
    let file = sandbox.config_file();
    let script =
        "exec strace -f -o trace -P \"$1\" -e inject=?stat,?newfstatat,?statx:error=EIO q hi";
    let outcome = sandbox.shell(script).arg("sh").arg(&file).run();
    outcome.refused(&[&format!(
        "q: cannot read {}: Input/output error",
        file.display()
    )]);
    server.expect_requests(0);
}

#[test]
fn no_file_of_settings_is_read_twice() {
    if lacks("strace", "strace -o /dev/null true") {
        return;
    }
    let server = Server::openai("fine");
    let sandbox = Sandbox::new().server_env(&server);
    let servers = sandbox.home().join("mcp.json");
    fs::write(&servers, r#"{"mcpServers": {}}"#).expect("a file");
    sandbox.config(&format!(
        "mcp = \"{}\"\n[roles.short]\nsystem = \"s\"\n[tools.shop.list]\nrun = [\"true\"]",
        servers.display()
    ));
    for command in [
        "hi",
        "-f hi",
        "-r short hi",
        "-t shop hi",
        "-t shop --dry-run hi",
        "--status",
        "--list-tools",
        "--last",
        "--history",
        "--generate providers",
        "--generate roles",
        "--generate tools",
        "--undo",
        "--clear --all --yes",
    ] {
        let _case = case(command);
        sandbox.write_current(&stored(&["one", "two"]));
        let script = format!("exec strace -f -e trace=openat,open -o trace q {command}");
        sandbox.shell(&script).run().exit(0);
        let trace = fs::read_to_string(sandbox.home().join("trace")).expect("a trace");
        let count = |name: &str| trace.matches(name).count();
        assert_eq!(count("/config.toml\""), 1, "config.toml");
        assert!(count("/mcp.json\"") <= 1, "mcp.json");
    }
}
