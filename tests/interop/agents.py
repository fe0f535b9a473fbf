"""
Agents that are run from a command line, at their makers' hosts: with the services that exeat ships, and APIs of our own in the place of the
makers'. What they ask of other hosts is refused. Each function returns the version and what was done.
"""
import os

from agent_apis import WORDS
from http_clients import BRINGS_ROOTS, made, version
from world import Skip


def agent(box, name):
    path = os.path.join(box.way.bring(made("agents")), "node_modules", ".bin", name)
    if not os.path.exists(path):
        raise Skip("`make agents` brought no %s" % name)
    return path


def said(way, name, done):
    """That the words came from the server, who was shown the real key."""
    assert WORDS in done.stdout, done
    assert way.world.agents[name].seen[way.name] == way.world.secrets[name.upper() + "_KEY"], way.world.agents[name].seen


def claude_prints(way):
    box = way.sandbox("claude")
    program = agent(box, "claude")
    done = box.run(program, "-p", "say hello, %s" % way.name, ANTHROPIC_API_KEY=way.key("ANTHROPIC_KEY"))
    said(way, "anthropic", done)
    return version(program, "--version"), ["a prompt and its streamed answer"]


def codex_executes(way):
    """Without the search of the web, which it offers to the model by itself, and which the operation `responses` refuses."""
    box = way.sandbox("codex")
    program = agent(box, "codex")
    words = 'exec "$0" exec -c "web_search=disabled" --skip-git-repo-check -s read-only "say hello, $1" </dev/null'
    done = box.run("sh", "-c", words, program, way.name, CODEX_API_KEY=way.key("OPENAI_KEY"))
    said(way, "openai", done)
    return version(program, "--version"), ["a prompt and its streamed answer"]


def gemini_prints(way):
    box = way.sandbox("gemini")
    box.write(".gemini/settings.json", '{"general": {"maxAttempts": 1}}')
    program = agent(box, "gemini")
    done = box.run(program, "--skip-trust", "-m", "gemini-2.5-flash", "-p", "say hello, %s" % way.name, GEMINI_API_KEY=way.key("GEMINI_KEY"),
                   GEMINI_CLI_NO_RELAUNCH="true")
    said(way, "gemini", done)
    return version(program, "--version"), ["a prompt and its streamed answer"]


TOOLS = [("Claude Code", claude_prints, {}), ("Codex CLI", codex_executes, {}),
         ("Gemini CLI", gemini_prints, {"captured": ("its Node.js " + BRINGS_ROOTS, "fetch failed")})]
