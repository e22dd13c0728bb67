"""The scenarios, by what they are about; a file's `table` yields them."""

from . import actions, again, asking, bodies, conversations, files, names, options, outputs, settings, tools


def all_scenarios():
    modules = [
        asking, bodies, options, conversations, names, files, actions, settings, outputs, tools, again
    ]
    return [scenario for module in modules for scenario in module.table()]
