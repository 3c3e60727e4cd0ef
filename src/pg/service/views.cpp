/*
 * views.cpp - maps the clients' rows in the GPU service.
 */
#include "pg/service/worker.h"

#include "pg/compat.h"
#include "pg/shared/view.h"

extern "C" {
#include "utils/memutils.h"
#include "utils/resowner.h"
}

/* A view that somebody uses. Rows that stay with the service (kmeans_load) are mapped by the client that keeps them,
 * and also by other clients that work on them. */
struct ClientView {
    SharedView *view;
    int users; /* > 0 */
    ClientView *next;
};

static ClientView *views = NULL;

/* The place in the list that points to the view of a directory, or the list's end. */
static ClientView **find_view(dsm_handle directory)
{
    ClientView **place = &views;

    while (*place != NULL && dsm_segment_handle((*place)->view->directory) != directory)
        place = &(*place)->next;
    return place;
}

/* Releases what an attempt to map has left. A view that came of it is not part of that. */
static void end_attempt(ResourceOwner owner)
{
    ResourceOwnerRelease(owner, RESOURCE_RELEASE_BEFORE_LOCKS, false, false);
    ResourceOwnerRelease(owner, RESOURCE_RELEASE_LOCKS, false, false);
    ResourceOwnerRelease(owner, RESOURCE_RELEASE_AFTER_LOCKS, false, false);
    ResourceOwnerDelete(owner);
}

/* The view of a directory in `context`; NULL, with nothing held, and why. There is no transaction whose end would
 * detach the segments that an error leaves behind. */
static SharedView *try_to_attach(uint32_t handle, MemoryContext context, char *why, size_t why_bytes)
{
    const MemoryContext caller = CurrentMemoryContext;
    const ResourceOwner outer = CurrentResourceOwner;
    const ResourceOwner owner = ResourceOwnerCreate(NULL, "pg_kmeans rows");
    SharedView *volatile view = NULL;

    strlcpy(why, "the rows' shared memory is gone", why_bytes);
    CurrentResourceOwner = owner;
    PG_TRY();
    {
        view = shared_view_attach(context, handle);
    }
    PG_CATCH();
    {
        MemoryContextSwitchTo(caller);

        ErrorData *const error = CopyErrorData();

        strlcpy(why, error->message, why_bytes);
        FreeErrorData(error);
        FlushErrorState();
    }
    PG_END_TRY();
    CurrentResourceOwner = outer;
    end_attempt(owner);
    return view;
}

/* A view that is mapped serves other users too, unless its owner has changed it since: a process cannot map a
 * segment twice. */
static ClientView *find_or_map(uint32_t handle, char *why, size_t why_bytes)
{
    ClientView *const found = *find_view(handle);

    if (found != NULL) {
        if (shared_view_is_current(found->view))
            return found;
        strlcpy(why, "the rows' shared memory is in use", why_bytes);
        return NULL;
    }

    const MemoryContext context = AllocSetContextCreate(TopMemoryContext, "kmeans rows", ALLOCSET_SMALL_SIZES);
    ClientView *const mapped = (ClientView *)MemoryContextAllocZero(context, sizeof(ClientView));

    mapped->view = try_to_attach(handle, context, why, why_bytes);
    if (mapped->view == NULL) {
        MemoryContextDelete(context);
        return NULL;
    }
    mapped->next = views;
    views = mapped;
    return mapped;
}

int service_views_attach(void *, uint32_t handle, PgkmSegment *segment, char *why, size_t why_bytes)
{
    ClientView *const mapped = find_or_map(handle, why, why_bytes);

    if (mapped == NULL)
        return 0;
    ++mapped->users;
    segment->handle = handle;
    segment->base = mapped->view->base;
    segment->bytes = mapped->view->bytes;
    return 1;
}

void service_views_detach(void *, const PgkmSegment *segment)
{
    ClientView **const place = find_view(segment->handle);
    ClientView *const mapped = *place;

    if (mapped == NULL || --mapped->users > 0)
        return;
    const MemoryContext context = GetMemoryChunkContext(mapped);

    *place = mapped->next;
    shared_view_detach(mapped->view);
    MemoryContextDelete(context);
}
