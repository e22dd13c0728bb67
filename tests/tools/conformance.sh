#!/bin/sh
# Runs the conformance suite of the Model Context Protocol for clients: conformance.sh PATH-OF-Q. It needs npm and the network.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
q=$(CDPATH='' cd -- "$(dirname -- "$1")" && pwd)/$(basename -- "$1")
here=$root/tests/tools/conformance
modules=$(sh "$root/tests/npm.sh" tools/conformance)/node_modules

# What q implements: not the resumption of streams, no elicitation, and no authorization.
scenarios='initialize tools_call request-metadata sep-2322-client-request-state http-standard-headers http-custom-headers
http-invalid-tool-headers json-schema-ref-no-deref json-schema-2020-12-preservation'
for scenario in $scenarios; do
    # Failures that are expected are listed in the file; any other one, and one that no longer fails, ends this.
    if report=$("$modules/.bin/node" "$modules/@modelcontextprotocol/conformance/dist/index.js" client \
        --scenario "$scenario" --command "python3 $here/client.py $q" \
        --expected-failures "$here/expected-failures.yaml" 2>&1); then
        echo "$scenario: $(echo "$report" | grep '^Passed')"
    else
        echo "$scenario: $report"
        exit 1
    fi
done
