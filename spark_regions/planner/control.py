"""What the driver asks while an application is under control: commands, and breakpoints that count rows."""

from __future__ import annotations

import msgspec

from spark_regions.debugging.breakpoints import Ask, Hit, Order, Principal, Reported, Target, Wait
from spark_regions.debugging.rows import Attempt
from spark_regions.debugging.state import AnyCommand, State
from spark_regions.errors import ControlError, InvalidRequest
from spark_regions.wire import messages as told


def controlled(message: told.Control) -> told.Controlled:
    """The state after the commands. It is the driver's: a planner that is started again needs no memory."""
    state = msgspec.convert(msgspec.to_builtins(message.state), State)
    try:
        for command in message.commands:
            state = state.apply(_command(command))
    except ControlError as error:
        return told.Controlled(message.state, str(error))
    return told.Controlled(msgspec.convert(msgspec.to_builtins(state), told.ControlState))


def _command(asked: told.ControlCommand) -> AnyCommand:
    fields = msgspec.to_builtins(asked)
    kind = fields.pop("command")
    try:
        command: AnyCommand = msgspec.convert(fields | {"type": kind}, AnyCommand)
    except msgspec.ValidationError as error:
        raise ControlError(f"Found the command {kind!r}, expected one of docs/control.md. Hint: {error}") from None
    return command


class Counting:
    """Principals by the numbers of their breakpoints."""

    def __init__(self, tau_seconds: float) -> None:
        self._tau_seconds = tau_seconds
        self._principals: dict[int, Principal] = {}

    def __call__(self, message: told.CountRows) -> told.CountOrders:
        """
        :raises InvalidRequest: a breakpoint that this process does not know: its rows were counted by another one
        """
        if message.first:
            self._principals[message.breakpoint] = Principal(message.target, self._tau_seconds, message.summed)
        principal = self._principals.get(message.breakpoint)
        if principal is None:
            raise InvalidRequest(
                f"Found breakpoint {message.breakpoint}, expected one that was counted from its start."
            )
        asked = message.attempt
        worker = Attempt(asked.stage, asked.partition, asked.number) if asked else Attempt(0, 0, 0)
        match message.event:
            case "joined":
                orders = principal.joined(worker)
            case "lost":
                orders = principal.lost(worker)
            case "waited":
                orders = principal.waited(message.round)
            case event:
                finished = event == "finished"
                orders = principal.reported(Reported(worker, message.round, message.produced, finished))
        return told.CountOrders(tuple(_order(each) for each in orders))


def _order(order: Order) -> told.CountOrder:
    match order:
        case Target(worker, round_, amount, last):
            return told.CountOrder("target", worker.number, round_, amount, last=last)
        case Ask(worker, round_):
            return told.CountOrder("ask", worker.number, round_)
        case Wait(round_, seconds):
            return told.CountOrder("wait", round=round_, seconds=seconds)
        case Hit(total):
            return told.CountOrder("hit", amount=total)
