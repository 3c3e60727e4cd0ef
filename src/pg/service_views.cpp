/*
 * service_views.cpp - the clients' rows in the GPU service.
 */
#include "pg/service_views.h"

#include "pg/compat.h"
#include "pg/shared_view.h"

extern "C" {
#include "utils/memutils.h"
#include "utils/resowner.h"
}

static SharedView *views = NULL;

static bool is_mapped(dsm_handle directory)
{
    for (const SharedView *view = views; view != NULL; view = view->next)
        if (dsm_segment_handle(view->directory) == directory)
            return true;
    return false;
}

/* What an attempt to map has left when it is over, of which a view that came of it is no part. */
static void end_attempt(ResourceOwner owner)
{
    ResourceOwnerRelease(owner, RESOURCE_RELEASE_BEFORE_LOCKS, false, false);
    ResourceOwnerRelease(owner, RESOURCE_RELEASE_LOCKS, false, false);
    ResourceOwnerRelease(owner, RESOURCE_RELEASE_AFTER_LOCKS, false, false);
    ResourceOwnerDelete(owner);
}

/* The view of a directory in `context`; NULL, with nothing held, and why. No transaction is
 * under way whose end would let go of the segments that an error leaves behind. */
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

int service_views_attach(void *, uint32_t handle, PgkmSegment *segment, char *why, size_t why_bytes)
{
    if (is_mapped(handle)) {
        strlcpy(why, "the rows' shared memory is in use", why_bytes);
        return 0;
    }

    const MemoryContext context = AllocSetContextCreate(TopMemoryContext, "kmeans rows", ALLOCSET_SMALL_SIZES);
    SharedView *const view = try_to_attach(handle, context, why, why_bytes);

    if (view == NULL) {
        MemoryContextDelete(context);
        return 0;
    }
    view->next = views;
    views = view;
    segment->handle = handle;
    segment->base = view->base;
    segment->bytes = view->bytes;
    return 1;
}

void service_views_detach(void *, const PgkmSegment *segment)
{
    SharedView **place = &views;

    while (*place != NULL && dsm_segment_handle((*place)->directory) != segment->handle)
        place = &(*place)->next;

    SharedView *const view = *place;

    if (view == NULL)
        return;
    const MemoryContext context = GetMemoryChunkContext(view);

    *place = view->next;
    shared_view_detach(view);
    MemoryContextDelete(context);
}
