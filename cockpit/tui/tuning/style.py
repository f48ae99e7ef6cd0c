"""How the tuning panel looks: its style, and the line of its keys."""

KEYS = (
    "[@click=screen.apply]Enter diff, then apply[/]  [@click=screen.guard]^G guard[/]  [@click=screen.keep]^Y keep[/]  "
    "[@click=screen.undo]^Z undo last[/]  [@click=screen.rounds]^F rounds[/]  [@click=screen.reread]^R read[/]  "
    "[@click=screen.section(1)]Tab history, actions[/]  [@click=screen.close]Esc close[/]"
)
READ_ONLY = "read-only   [@click=screen.section(1)]Tab history[/]   [@click=screen.dismiss(None)]Esc close[/]"
STYLE = """
TuningScreen { align: center middle; background: transparent; }
TuningScreen > Vertical {
    width: 100; max-width: 100%; height: auto; max-height: 100%;
    padding: 0 1; border: solid $cockpit-chart; border-title-color: $cockpit-strong; background: $surface;
}
TuningScreen .quiet { color: $cockpit-dim; }
TuningScreen #knobs { height: auto; max-height: 10; }
TuningScreen KnobRow { height: 1; }
TuningScreen .name { width: 3fr; height: 1; text-overflow: ellipsis; text-wrap: nowrap; }
TuningScreen .value { width: 2fr; height: 1; text-overflow: ellipsis; text-wrap: nowrap; padding: 0 1; }
TuningScreen .cost { width: 10; height: 1; color: $cockpit-dim; }
TuningScreen Value:focus { text-style: reverse; }
TuningScreen Input, TuningScreen .entry { width: 3fr; }
TuningScreen Input { background: $panel; }
TuningScreen Input:focus { background: $cockpit-band; }
TuningScreen #details { height: 3; color: $cockpit-dim; text-wrap: nowrap; text-overflow: ellipsis; }
TuningScreen #diff { height: auto; max-height: 12; scrollbar-size: 1 1; }
TuningScreen #diff:focus { background: $panel; }
TuningScreen #plan { height: auto; }
TuningScreen #status { height: auto; min-height: 1; max-height: 5; text-style: bold; }
TuningScreen #status.-bad { color: $cockpit-alarm; }
TuningScreen .heading { height: 1; color: $cockpit-dim; }
TuningScreen OptionList {
    height: auto; max-height: 5; background: $surface; scrollbar-gutter: stable; scrollbar-size: 1 1;
}
TuningScreen #actions { max-height: 4; }
TuningScreen .-none { display: none; }
TuningScreen #keys { height: auto; color: $cockpit-dim; link-color: $cockpit-text; link-style: none; }
TuningScreen.-short #knobs { max-height: 4; }
TuningScreen.-short #details { height: 2; }
TuningScreen.-short #diff { max-height: 8; }
TuningScreen.-short.-acting #diff { max-height: 5; }
TuningScreen.-short #status { max-height: 2; }
TuningScreen.-short #history { max-height: 2; }
TuningScreen.-short #actions { max-height: 2; }
"""
