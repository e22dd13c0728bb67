"""A model for trials of tools, in Anthropic's form: what it says is decided by a method of the trial's own."""

import http.server
import json


class Model(http.server.BaseHTTPRequestHandler):
    def calls(self, request):
        """The calls to make: the name and the arguments of each; without any it has done its work."""
        raise NotImplementedError

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        content = []
        for name, arguments in self.calls(request):
            content.append({"type": "tool_use", "id": f"call{len(content)}", "name": name, "input": arguments})
        reason = "tool_use"
        if not content:
            content = [{"type": "text", "text": "done"}]
            reason = "end_turn"
        reply = {"type": "message", "role": "assistant", "content": content, "stop_reason": reason}
        body = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass
