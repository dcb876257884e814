/* SPDX-License-Identifier: MIT */
/* Loading of plugins and of the library itself. */
#ifndef PLUGINS_H
#define PLUGINS_H

#include <dlfcn.h>

#include "plugin.h"
#include "process.h"

struct loaded {
	void *handle;
	const struct plugin *plugin;
};

static inline void *load(const char *path)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (handle == NULL)
		fprintf(stderr, "%s\n", dlerror());
	ck_assert_ptr_nonnull(handle);
	return handle;
}

static inline struct loaded load_plugin(const char *variable)
{
	struct loaded loaded = { .handle = load(path_from(variable)) };

	loaded.plugin = dlsym(loaded.handle, "plugin");
	ck_assert_ptr_nonnull(loaded.plugin);
	return loaded;
}

static inline void unload(struct loaded *loaded)
{
	ck_assert_int_eq(dlclose(loaded->handle), 0);
}

#endif /* PLUGINS_H */
