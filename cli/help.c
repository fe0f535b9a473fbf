#include "cli/help.h"

#include <string.h>

enum { WIDTH = 28 };

static const struct row {
    const char *noun, *verb;
    const char *option, *what;
} rows[] = {
    {"ca", "export", "--bundle", "with the system's certificates, for settings that replace them"},
    {"ca", "rotate", "--finish", "end the old one, which both have been given out beside"},
    {"secret", "add", "--like PREFIX", "placeholders begin like this, for clients that look at it"},
    {"secret", "add", "--client-certificate FILE", "it is the key of this certificate (PEM)"},
    {"secret", "add", "--file FILE", "the value is in this file (-: standard input)"},
    {"secret", "add", "--allow-short", "also a value of less than 16 bytes"},
    {"secret", "rotate", "--client-certificate FILE", "the new key is of this certificate (PEM)"},
    {"secret", "rotate", "--file FILE", "the value is in this file (-: standard input)"},
    {"secret", "rotate", "--allow-short", "also a value of less than 16 bytes"},
    {"run", NULL, "--sandbox NAME", "which sandbox of the policy it is"},
    {"run", NULL, "--policy FILE", "a policy, for an exeatd of the sandbox's own"},
    {"run", NULL, "--settings FILE", "more lines for the configuration of that exeatd"},
    {"run", NULL, "--secret NAME[=VARIABLE]", "the variable has the value of this credential"},
    {"run", NULL, "--log FILE", "append that exeatd's audit trail to this file in the end"},
    {"run", NULL, "--ro PATH", "what is at this path is read-only (/: everything)"},
    {"run", NULL, "--hide PATH", "an empty folder or file in its place"},
    {"run", NULL, "--bind PATH[:PLACE]",
     "show it, writable in spite of both, perhaps at another place"},
    {"run", NULL, "--strict-trust", "without the system's roots of trust"},
    {"run", NULL, "--unenforced", "without a sandbox: the command is told of exeat, not forced"},
    {"env", NULL, "--format FORMAT", "sh unless given"},
    {"sandbox", "add", "--format FORMAT", "sh unless given"},
    {"policy", "explain", "--policy FILE", "by which policy"},
    {"policy", "explain", "--sandbox S", "whose request; needed where the policy has several"},
    {"policy", "explain", "--with ours|none|foreign", "which credential it carries"},
    {"policy", "explain", "--header 'N: V'", "a field of it; may be repeated"},
    {"policy", "explain", "--type TYPE", "the Content-Type of its body"},
    {"policy", "explain", "--body FILE", "its body (-: standard input)"},
    {"policy", "registries", "--root DIR", "read the system's files below this folder"},
    {"policy", "import", "--service NAME", "what the service is called; else as its host"},
    {"policy", "import", "--url URL", "where the API is; else as the description says first"},
    {"policy", "fmt", "--check", "print nothing; exit with 1 when the layout is another"},
    {"policy", "fmt", "--write", "into the file, instead of printing it"},
    {"policy", "fmt", "--to text|json", "in which form; else that of the file"},
    {"policy", "test", "--policy FILE", "by which policy"},
    {"policy", "suggest", "--policy FILE", "put it into this policy, and print that"},
    {"log", "verify", "--head FILE", "one that was exported before: then also a cut end is found"},
    {"log", "verify", "--dir DIR", "the trail in this folder; else the daemon's"},
    {"log", "verify", "--file FILE", "one file, wherever it was copied to"},
    {"log", "verify", "--key FILE", "the sign.pub of the trail that this file is of"},
    {"log", "head", "--dir DIR", "the newest head in this folder, without asking the daemon"},
    {"log", NULL, "--follow", "go on as records come"},
    {"log", NULL, "--sandbox S", "only this one's"},
    {"log", NULL, "--denied", "only refusals"},
    {"log", NULL, "--reason R", "only what was refused, or ended, for this reason"},
    {"log", NULL, "--credential C", "only what was lent this one, or was refused with it"},
    {"log", NULL, "--since T", "only from then on: 2026-01-02, 2026-01-02T03:04, 90s, 5m, 2h, 7d"},
    {"log", NULL, "--host H", "only to this host and names below it"},
    {"log", NULL, "--id", "with a column of the records' ids"},
    {"log", NULL, "--all", "also what `exeat doctor` tries, which is only counted else"},
    {"log", NULL, "--record ID", "this record whole, and how it ended"},
    {"log", NULL, "--dir DIR", "of the trail in this folder; else the daemon's"},
    {"log", NULL, "--file F", "of this file, as is every FILE (-: standard input)"},
    {"reload", NULL, "--yes", "also a policy that newly allows something"},
    {"nft", "print", "--routes", "instead: the commands of `ip` that `tproxy` takes besides"},
    {"nft", "check", "--file FILE", "what `nft -j list ruleset` has printed (-: standard input)"},
    {"version", NULL, "--deps", "with the versions of the linked libraries"},
};

static bool is_of(const struct row *r, const char *noun, const char *verb) {
    return strcmp(r->noun, noun) == 0 &&
           (verb && r->verb ? strcmp(r->verb, verb) == 0 : verb == r->verb);
}

bool help_option(const char *noun, const char *verb, size_t n, const char **option,
                 const char **what) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!is_of(&rows[i], noun, verb) || n-- > 0)
            continue;
        *option = rows[i].option;
        *what = rows[i].what;
        return true;
    }
    return false;
}

void help_options(FILE *to, const char *noun, const char *verb) {
    const char *option, *what;
    for (size_t i = 0; help_option(noun, verb, i, &option, &what); i++)
        fprintf(to, "%s  %-*s %s\n", i > 0 ? "" : "\n", WIDTH, option, what);
}
