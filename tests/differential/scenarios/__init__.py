"""The scenarios, by what they are about; a file's `table` yields them."""

from . import (
    actions,
    again,
    attachments,
    conversations,
    files,
    interruptions,
    names,
    options,
    outputs,
    questions,
    settings,
    together,
    tools,
)


def all_scenarios():
    modules = [
        questions,
        options,
        conversations,
        names,
        files,
        actions,
        settings,
        outputs,
        interruptions,
        together,
        tools,
        attachments,
        again,
    ]
    return [scenario for module in modules for scenario in module.table()]
