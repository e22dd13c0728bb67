"""The scenarios, by what they are about; a file's `table` yields them."""

from . import (
    actions,
    again,
    answers,
    attachments,
    conversations,
    failures,
    files,
    interruptions,
    names,
    options,
    outputs,
    providers,
    questions,
    responses,
    settings,
    shapes,
    streams,
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
        providers,
        responses,
        failures,
        streams,
        answers,
        outputs,
        interruptions,
        together,
        tools,
        attachments,
        shapes,
        again,
    ]
    return [scenario for module in modules for scenario in module.table()]
