#include "policy/suffix.h"

#include "policy/authority.h"

#include <libpsl.h>

/*
 * What the public suffix list lacks, or lacked when a distribution packed it, and what it has but
 * cannot be asked for from above. `*` is one label.
 */
static const char *const shared[] = {
    "s3.amazonaws.com",
    "s3.*.amazonaws.com",
    "s3-website.*.amazonaws.com",
    "compute.amazonaws.com",
    "elb.amazonaws.com",
    "execute-api.*.amazonaws.com",
    "s3.*.amazonaws.com.cn",
    "lambda-url.*.on.aws",
    "cloudfront.net",
    "blob.core.windows.net",
    "file.core.windows.net",
    "queue.core.windows.net",
    "table.core.windows.net",
    "dfs.core.windows.net",
    "web.core.windows.net",
    "*.web.core.windows.net",
    "azurewebsites.net",
    "azureedge.net",
    "azurefd.net",
    "azure-api.net",
    "trafficmanager.net",
    "cloudapp.azure.com",
    "*.cloudapp.azure.com",
    "storage.googleapis.com",
    "googleusercontent.com",
    "cloudfunctions.net",
    "r2.cloudflarestorage.com",
    "trycloudflare.com",
    "digitaloceanspaces.com",
    "aliyuncs.com",
    "myqcloud.com",
    "backblazeb2.com",
    "wasabisys.com",
    "githubusercontent.com",
    "hf.space",
    "ngrok.app",
    "ngrok.dev",
    "ngrok-free.app",
    "ngrok-free.dev",
    "loca.lt",
    "wordpress.com",
    "sharepoint.com",
    "requestbin.net",
    "pipedream.net",
};

static struct view last_label(struct view *rest) {
    size_t start = rest->n;
    while (start > 0 && rest->p[start - 1] != '.')
        start--;
    struct view label = view_skip(*rest, start);
    *rest = view_head(*rest, start > 0 ? start - 1 : 0);
    return label;
}

/* Compares from the end. Both used up: the name is the domain; only the name: the domain is below it. */
static bool fits(struct view domain, struct view name, bool deep) {
    while (name.n > 0 && domain.n > 0) {
        struct view wanted = last_label(&domain), label = last_label(&name);
        if (!view_equal(wanted, label) && !view_equal(wanted, VIEW("*")))
            return false;
    }
    return name.n == 0 && (domain.n == 0 || deep);
}

/* A library without its data knows nothing, so everything may be a suffix. */
static bool is_listed(struct view name) {
    char text[HOST_SIZE];
    const psl_ctx_t *list = psl_builtin();
    return !list || view_cstr(name, text, sizeof text) != 0 ||
           psl_is_public_suffix2(list, text, PSL_TYPE_ANY) != 0;
}

bool suffix_is_shared(struct view name, bool deep) {
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        if (fits(view_str(shared[i]), name, deep))
            return true;
    return is_listed(name);
}
