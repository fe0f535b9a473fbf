/*
 * The words of a text that an operator wrote: what the policy and the
 * configuration have in common (docs/policy.md, "How it is written").
 *
 * A text is a list of statements; a statement begins with a keyword and ends
 * at a newline, a ';', or before the '}' of its block. The keywords of a
 * block are rows of a table; statements_read finds the row, calls its reader,
 * checks that the statement ends where it must, and after an error goes on
 * with the next statement, so that all errors are met in one run.
 */
#ifndef POLICY_LEXER_H
#define POLICY_LEXER_H

#include "policy/errors.h"

enum token_kind {
    TOKEN_WORD,
    TOKEN_OPEN,  /* { */
    TOKEN_CLOSE, /* } */
    TOKEN_END,   /* newline or ; */
    TOKEN_EOF,
    TOKEN_BAD, /* bytes that are no token; already reported */
};

struct token {
    enum token_kind kind;
    struct view text; /* of a word, without its quotes */
    bool quoted;
    struct position at;
};

struct statement;

struct lexer {
    struct token token; /* the one in hand */
    struct policy_errors *errors;
    const char *file;
    struct view text;
    size_t pos, line_start;
    uint32_t line;
    const struct statement *top; /* what begins outside of blocks: before it a '}' is missing */
    size_t n_top;
    bool in_list;       /* ',' and ']' end words */
    bool international; /* characters outside ASCII may stand in words: names of hosts and files */
};

/*
 * Starts with the first token in hand. text and file must outlive the lexer
 * and whatever keeps its views. A text over POLICY_TEXT_MAX is one error and
 * no token.
 */
void lexer_init(struct lexer *l, struct view text, const char *file, struct policy_errors *errors);
/* Takes the token in hand and reads the next one. */
struct token lexer_take(struct lexer *l);
bool lexer_at(const struct lexer *l, enum token_kind kind);
/* Whether the token in hand is this unquoted word. */
bool lexer_at_word(const struct lexer *l, const char *word);
/* Takes it if it is. */
bool lexer_skip_word(struct lexer *l, const char *word);
/* Reports that something else was expected at the token in hand. Always ERR_BAD. */
int lexer_expected(struct lexer *l, const char *what);
/* Takes a word of any kind; `what` says in the error what it would have been. */
MUST_USE int lexer_word(struct lexer *l, const char *what, struct token *out);
/* Takes a decimal number of least to most. */
MUST_USE int lexer_number(struct lexer *l, const char *what, uint64_t least, uint64_t most,
                          uint64_t *out);
/* Takes a name: 1 to 64 of [A-Za-z0-9_.-], beginning with a letter or digit. */
MUST_USE int lexer_name(struct lexer *l, const char *what, struct token *out);
bool name_is_good(struct view v);
bool lexer_at_list(const struct lexer *l);
/*
 * Takes a list `[a, b]`, which may go over several lines, and calls item for each word of it; it stops at the first
 * error, which item has reported. `what` is one of them.
 */
MUST_USE int lexer_list(struct lexer *l, const char *what,
                        int (*item)(void *ctx, struct lexer *l, const struct token *t), void *ctx);

/* How a statement may stand in a block. */
enum statement_use {
    STATEMENT_OFTEN = false,
    STATEMENT_ONCE = true,
    STATEMENT_NAMES = 2, /* of hosts or files: its words may have characters outside ASCII */
    STATEMENT_NAMES_ONCE = STATEMENT_NAMES | STATEMENT_ONCE,
};

/* One keyword of a block. */
struct statement {
    const char *word;
    /* Reads what stands behind the keyword `at`; anything but 0 means that an error was reported, or ERR_MEMORY. */
    int (*read)(void *ctx, struct lexer *l, const struct token *at);
    enum statement_use use;
};

enum { STATEMENTS_MAX = 32 /* rows of a table */ };

/*
 * Reads statements up to the end of the text, or, where inside is not NULL
 * (what the block is: "a service"), a block in braces. ERR_MEMORY; ERR_BAD
 * only when the block did not begin. Other errors are in l->errors.
 */
MUST_USE int statements_read(struct lexer *l, const struct statement *table, size_t n,
                             const char *inside, void *ctx);
/* The same for a block whose statements have no keyword: `read` is called at the first word of each. */
MUST_USE int lines_read(struct lexer *l, int (*read)(void *ctx, struct lexer *l),
                        const char *inside, void *ctx);

#endif
