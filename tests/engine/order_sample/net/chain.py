from .report import Report, clip


class Log(Report):
    pass


def note(log, x):
    return log.read(x)


def both(log, net, x):
    clip(net.parameters(), log.limit)
    return note(log, x)
