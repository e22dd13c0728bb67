//! Settings, where a failing disk hides their file. The rest is in the transcripts.

use crate::fixtures::lacks;
use crate::sandbox::Sandbox;
use crate::server::Server;

#[test]
fn a_file_that_a_failing_disk_hides_does_not_count_as_missing() {
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
