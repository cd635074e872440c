"""The times of a year, by the zones of Python and no cron library, one line each.

Prints what `tests/it/year.txt` holds: schedule, zone and instant of each time from 2027-01-15 08:00 UTC on,
for one year. A local time that does not exist stands for the first instant after the gap; one that exists
twice for its first instant.
"""

from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

BEGIN = datetime(2027, 1, 15, 8, tzinfo=timezone.utc)
END = BEGIN + timedelta(days=365)
ZONES = ["Europe/Zurich", "America/New_York", "Australia/Lord_Howe"]


def instant(day, hour, minute, zone):
    """The instant of a local time."""
    local = datetime(day.year, day.month, day.day, hour, minute)
    there = local.replace(tzinfo=zone, fold=0).astimezone(timezone.utc)
    if there.astimezone(zone).replace(tzinfo=None) == local:
        return there
    # It is left out: go back to a minute that exists, and on from there to the first that follows.
    before = there - timedelta(hours=2)
    while (before + timedelta(minutes=1)).astimezone(zone).replace(tzinfo=None) < local:
        before += timedelta(minutes=1)
    return before + timedelta(minutes=1)


def times(zone):
    """Each schedule's times in a zone."""
    day = date(2027, 1, 13)
    while day < date(2028, 1, 18):
        yield "night", instant(day, 2, 30, zone)
        if day.weekday() < 5:
            yield "office", instant(day, 9, 0, zone)
        for hour in (0, 12):
            yield "half-days", instant(day, hour, 0, zone)
        if day.day == 1:
            yield "monthly", instant(day, 1, 45, zone)
        day += timedelta(days=1)


lines = set()
for name in ZONES:
    for schedule, at in times(ZoneInfo(name)):
        if BEGIN < at <= END:
            lines.add((at, f"{schedule} {name} {at.strftime('%Y-%m-%dT%H:%M:%SZ')}"))
for _, line in sorted(lines):
    print(line)
