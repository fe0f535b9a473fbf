/*
 * JSON-RPC 2.0 (and MCP on top of it) and GraphQL over HTTP, as they lie in a JSON body: which
 * members a reader has to collect, and what they say. Pure.
 *
 * JSON-RPC: an object, or an array of at least one of them; each with "jsonrpc" "2.0" and either a "method" or a
 * "result" or "error". Members that only a reader who disregards case takes for these make it none.
 * GraphQL: an object of "query", "operationName", "variables" and "extensions" and nothing else, as some servers take
 * documents by an id of theirs; without extensions.persistedQuery for the same reason.
 */
#ifndef POLICY_RPC_READ_H
#define POLICY_RPC_READ_H

#include "policy/graphql.h"
#include "policy/json_read.h"

/* The pointers to what both protocols say. ERR_MEMORY. */
MUST_USE int protocol_finds_init(struct json_finds *f);

/*
 * What they say, after the end of a body that is read. False: it is not of this protocol, or not certain. What
 * *calls points to is the caller's to free; the views stand until r is freed.
 */
bool rpc_read(const struct json_read *r, const struct json_finds *f, struct rpc_call **calls,
              struct rpc_facts *out);
bool graphql_request_read(const struct json_read *r, const struct json_finds *f,
                          struct graphql **document, struct graphql_facts *out);

#endif
