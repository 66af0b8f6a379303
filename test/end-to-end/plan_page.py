#!/usr/bin/env python3
"""The page of --emit=html in a real browser: what it draws, finds, and does with keys; and that it asks no network.

  plan_page.py [--screenshots FOLDER]    every view, light and dark, wide and narrow, as a picture
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import sys

import numpy as np

from browser import Browser, find_browser
from support import DISTC, ROOT, Checks, Folder, Model, must, need_tools

VIEWS = ["overview", "schedule", "memory", "variables", "messages", "nodes", "remarks"]


def with_remarks(folder):
    page = folder / "remarks.html"
    must(Model("mlp-clip").compile_command(page, 2, "ShardedUpdate", "--emit=html"))
    return page


def with_timeline(folder):
    model, flags = Model("mlp-momentum"), ["--one-process-per-replica"]
    train, timeline = folder / "train", folder / "timeline.json"
    model.compile(train, 2, "AllReduce", *flags)
    must([train, "--data", model.feeds, "--steps", "4", "--quiet", "--timeline", timeline])
    page = folder / "timeline.html"
    must([*model.compile_command(page, 2, "AllReduce", *flags), "--emit=html", "--timeline", timeline])
    return page


def complaints(browser, page):
    """What the console said, and what was asked of anything but the page itself."""
    asked = [url for url in browser.requests if not url.startswith(("file://" + str(page), "data:", "about:srcdoc"))]
    return [f"the console said: {message}" for message in browser.messages] + [f"the page asks for {url}" for url in asked]


def focus(browser):
    return browser.evaluate("(a => a.id || a.className || a.tagName)(document.activeElement)")


def draws(browser, page):
    found = []
    for scheme, width in (("light", 1440), ("dark", 1440), ("light", 400)):
        browser.open(page, width, 860, scheme)
        for view in VIEWS:
            browser.evaluate(f"byId('tab-{view}').click()")
            browser.settle()
            # Drawn: a canvas has pixels of more than one colour; the page is no wider than the window.
            blank = browser.evaluate("""[...document.querySelectorAll('#views canvas')].filter(canvas => {
                const pixels = new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer);
                return new Set(pixels).size < 3;
            }).length""")
            if blank:
                found.append(f"{view}, {scheme}, {width}: {blank} charts are blank")
            if (wide := browser.evaluate("document.documentElement.scrollWidth")) > width:
                found.append(f"{view}, {scheme}, {width}: is {wide} wide")
            if not browser.evaluate("byId('views').textContent.trim().length > 20"):
                found.append(f"{view}, {scheme}, {width}: is empty")
    return found + complaints(browser, page)


def searches(browser, page):
    browser.open(page)
    browser.key("/")
    if focus(browser) != "search":
        return [f"'/' goes to {focus(browser)}, not to the search"]
    browser.type("hidden kernel")
    first = browser.evaluate("document.querySelector('.hit[aria-selected=true] .name').textContent")
    found = [] if first == "hidden/kernel" else [f"'hidden kernel' finds {first} first"]
    browser.key("ArrowDown")
    if browser.evaluate("byId('search').getAttribute('aria-activedescendant')") != "hit1":
        found.append("down does not go to the second result")
    browser.key("ArrowUp")
    browser.key("Enter")
    if "hidden/kernel" != browser.evaluate("byId('details').querySelector('h2').textContent"):
        found.append("Enter does not open the variable")
    if browser.evaluate("state.tab") != "variables" or browser.evaluate("document.querySelector('.row.chosen').textContent.includes('hidden/kernel')") is not True:
        found.append("the variable is not shown among the variables")
    if not browser.evaluate("[...byId('details').querySelectorAll('.link')].some(link => link.textContent === 'bucket 0 of step')"):
        found.append("the variable's bucket is not beside it")
    browser.key("Escape")
    if not browser.evaluate("byId('details').hidden"):
        found.append("Escape does not close the details")
    browser.key("/")
    browser.key("Escape")
    browser.type("there is no such name")
    if browser.evaluate("document.querySelectorAll('.hit').length") != 0:
        found.append("finds what is not there")
    return found + complaints(browser, page)


def moves_by_keys(browser, page):
    browser.open(page)
    found = []
    browser.evaluate("byId('tab-overview').focus()")
    browser.key("ArrowRight")
    if focus(browser) != "tab-schedule" or browser.evaluate("state.tab") != "schedule":
        found.append("right on the tabs does not show the next view")
    # From the tabs on, Tab reaches the chart and the table.
    reached = []
    for _ in range(20):
        browser.key("Tab")
        reached.append(focus(browser))
    for part in ("chart", "scroll"):
        if part not in reached:
            found.append(f"Tab does not reach the {part}: {reached}")
    browser.evaluate("document.querySelector('.chart').focus()")
    browser.key("Home")
    browser.key("ArrowRight", 2)
    said = browser.evaluate("byId('said').textContent")
    third = browser.evaluate("currentEntry().operations[2].name")
    if third not in said:
        found.append(f"the third operation, {third}, is not said: {said}")
    browser.key("+", 3)
    # The whole of it does not fit where it took more of the step than what is shown.
    if not browser.evaluate("(chart => chart.from <= chart.anchor && chart.anchor <= chart.to && chart.anchor === (chart.current.begin + chart.current.end) / 2"
                            " && chart.to - chart.from < chart.end / 4)([...charts][0])"):
        found.append("'+' loses the operation that it magnifies")
    browser.key("0")
    browser.key("Enter")
    if browser.evaluate("byId('details').querySelector('h2').textContent") != third:
        found.append("Enter in the chart does not open the operation")
    if browser.evaluate("(style => style.outlineStyle)(getComputedStyle(document.activeElement))") == "none":
        found.append("the focus is not to be seen")
    browser.key("Escape")
    browser.evaluate("document.querySelector('.scroll').focus()")
    browser.key("End")
    last = browser.evaluate("currentEntry().operations.length")
    at = browser.evaluate("byId(document.activeElement.getAttribute('aria-activedescendant')).getAttribute('aria-rowindex')")
    if at != str(last + 1):
        found.append(f"End goes to row {at} of {last + 1}")
    browser.evaluate("show('nodes'); document.querySelector('.scroll').focus()")
    browser.key("Home")
    before = browser.evaluate("document.querySelectorAll('.rows .row').length")
    browser.key("ArrowRight")
    if browser.evaluate("document.querySelectorAll('.rows .row').length") <= before or browser.evaluate("document.querySelector('.row.current').getAttribute('aria-expanded')") != "true":
        found.append("right does not open a scope")
    browser.key("?")
    if not browser.evaluate("byId('keys').open"):
        found.append("'?' does not list the keys")
    browser.key("Escape")
    if browser.evaluate("byId('keys').open"):
        found.append("Escape does not close the list of keys")
    browser.evaluate("show('memory'); document.querySelector('.chart').focus()")
    browser.key("Home")
    if "operation 0," not in browser.evaluate("byId('said').textContent"):
        found.append("the memory at the first operation is not said")
    return found + complaints(browser, page)


def luminance(color):
    channels = [int(c) / 255 for c in re.findall(r"\d+", color)[:3]]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def has_schemes(browser, page):
    """Dark is dark, and in both schemes text is told from what it stands on (WCAG 2's 4.5)."""
    found, pages = [], {}
    colors = """(names => Object.fromEntries(names.map(name => {
        const probe = document.createElement('i');
        probe.style.color = `var(--${name})`;
        document.body.append(probe);
        const color = getComputedStyle(probe).color;
        probe.remove();
        return [name, color];
    })))(%s)"""
    fills = ["kernel", "matmul", "conv", "pool", "copy", "random", "rows", "routine", "update", "accumulate", "all_reduce", "server", "trained", "slot", "other", "data"]
    for scheme in ("light", "dark"):
        browser.open(page, scheme=scheme)
        now = browser.evaluate(colors % json.dumps([*fills, "page", "panel", "sunk", "chosen", "text", "quiet", "accent", "accent-text", "on-fill", "warning", "warning-fill"]))
        pairs = [("on-fill", fill) for fill in fills] + [(text, under) for text in ("text", "quiet") for under in ("page", "panel", "sunk", "chosen")]
        pairs += [("accent", "panel"), ("accent", "page"), ("accent-text", "accent"), ("warning", "warning-fill")]
        for over, under in pairs:
            high, low = sorted((luminance(now[over]), luminance(now[under])), reverse=True)
            if (contrast := (high + 0.05) / (low + 0.05)) < 4.5:
                found.append(f"{scheme}: {over} on {under} has a contrast of {contrast:.2f}")
        browser.evaluate("show('schedule')")
        browser.settle()
        pages[scheme] = luminance(browser.evaluate("getComputedStyle(document.body).backgroundColor")), browser.evaluate("palette.of('kernel')")
    if not pages["dark"][0] < 0.1 < 0.8 < pages["light"][0]:
        found.append(f"the page's luminance is {pages}")
    # A change while the page is open reaches the charts.
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    browser.settle()
    if browser.evaluate("palette.of('kernel')") != pages["light"][1]:
        found.append("charts keep the colours of the scheme before")
    return found + complaints(browser, page)


def shows_measured(browser, page):
    browser.open(page)
    browser.evaluate("byId('tab-schedule').click()")
    browser.settle()
    found = []
    rows = browser.evaluate("measured.stepOf(currentEntry(), 2).rows.map(row => [row.label, row.events.filter(event => event.operation).length])")
    count = browser.evaluate("currentEntry().operations.length")
    replicas = [row for row in rows if "replica" in row[0]]
    if [label for label, _ in replicas] != ["worker:0 replica 0", "worker:1 replica 1"]:
        found.append(f"the rows are {rows}")
    if any(events != count for _, events in replicas):
        found.append(f"of {count} operations were measured {replicas}")
    # What the step runs is no evaluation, though it begins as one does.
    if browser.evaluate("measured.stepsOf(plan.entries.find(entry => entry.name === 'eval')).length") != 0:
        found.append("steps are taken for evaluations")
    if browser.evaluate("measured.stepsOf(plan.entries.find(entry => entry.name === 'init')).join()") != "0":
        found.append("the initializers are not found in step 0")
    if not browser.evaluate("currentEntry().operations.every(operation => measured.meanOf(operation) >= 0)"):
        found.append("an operation has no mean")
    browser.evaluate("[...document.querySelectorAll('.button')].find(button => button.textContent === 'Measured').click()")
    browser.settle()
    # Tasks that are in one file are on one clock: a step begins once.
    events = browser.evaluate("measured.stepOf(currentEntry(), 2).rows.map(row => row.events.map(event => [event.begin, event.name]))")
    if sum(event[0] == 0 for row in events for event in row) != 1:
        found.append("the step does not begin with one operation of one task")
    if "all tasks on one clock" not in (said := browser.evaluate("byId('views').textContent")):
        found.append(f"the page does not say that the tasks are on one clock: {said}")
    return found + complaints(browser, page)


def holds_any_name(browser, folder):
    """Names that are markup are shown as they are."""
    plan, page = folder / "names.mlir", folder / "names.html"
    model = Model("mlp-momentum")
    must([*model.compile_command(plan, 2), "--emit=drt"])
    name = "</script><img src=x onerror=broken()><b>&amp;"
    text = plan.read_text()
    for kind in ("hidden/MatMul", "hidden/kernel"):
        text = text.replace(f'"{kind}"', f'"{name}{kind}"')
    plan.write_text(text)
    must([DISTC, "compile", plan, "--emit=html", "-o", page])
    browser.open(page)
    browser.key("/")
    browser.type("variable onerror")
    browser.key("Enter")
    shown = browser.evaluate("byId('details').querySelector('h2').textContent")
    found = [] if shown == name + "hidden/kernel" else [f"the name is shown as {shown}"]
    for view in VIEWS:
        browser.evaluate(f"show('{view}')")
        browser.settle()
    if browser.evaluate("document.images.length") != 0:
        found.append("a name has become an element")
    return found + complaints(browser, page)


def shows_in_notebooks(browser, folder):
    """What the Python package gives notebooks: the page in a frame that may run scripts and nothing else."""
    os.environ["DISTC"] = str(DISTC)
    sys.path.insert(0, str(ROOT / "tools" / "python"))
    import distc

    for name in ("linear.mlir", "linear.json"):
        shutil.copy(ROOT / "test" / "dialects" / "dfg" / "stablehlo" / "Inputs" / name, folder / name)
    np.savez(folder / "linear.npz", **{"params/w": np.ones((3, 2), "f"), "params/b": np.zeros(2, "f"), "count": np.array(7, "i"),
                                      "opt/0/trace/w": np.zeros((3, 2), "f"), "opt/0/trace/b": np.zeros(2, "f")})
    executable = distc.compile(folder / "linear.mlir", batch=12, replicas=2, processes=True)
    notebook = folder / "notebook.html"
    notebook.write_text(f"<!DOCTYPE html><meta charset=utf-8><link rel=icon href='data:,'><p>Out[1]:</p>{executable._repr_html_()}")
    browser.open(notebook)
    with browser.frame():
        browser.settle()
        found = [] if "2 replicas in 2 tasks" in browser.evaluate("byId('summary').textContent") else ["the plan is not shown"]
        if not browser.evaluate("plan.variables.some(variable => variable.name === 'params/w')"):
            found.append("the step's state is not in the plan")
    return found + complaints(browser, notebook)


def take_screenshots(browser, pages, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for page in pages:
        for scheme in ("light", "dark"):
            for width, height in ((1440, 900), (400, 860)):
                browser.open(page, width, height, scheme)
                for view in VIEWS:
                    browser.evaluate(f"show('{view}')")
                    browser.settle()
                    browser.screenshot(folder / f"{page.stem}-{view}-{scheme}-{width}.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--screenshots", type=pathlib.Path, help="write pictures to this folder instead of checking")
    arguments = parser.parse_args()
    need_tools()
    path = find_browser()
    with Folder() as work, Browser(path) as one:
        plain, timed = with_remarks(work), with_timeline(work)
        if arguments.screenshots:
            take_screenshots(one, (plain, timed), arguments.screenshots)
        else:
            checks = Checks()
            for check, page_ in ((draws, plain), (draws, timed), (searches, plain), (moves_by_keys, timed), (has_schemes, timed), (shows_measured, timed)):
                checks.check(f"{check.__name__} {page_.stem}", check, one, page_)
                one.messages.clear()
                one.requests.clear()
            checks.check("holds any name", holds_any_name, one, work)
            one.messages.clear()
            one.requests.clear()
            checks.check("shows in notebooks", shows_in_notebooks, one, work)
            checks.exit()
