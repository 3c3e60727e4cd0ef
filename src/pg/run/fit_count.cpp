/*
 * fit_count.cpp - what a call or query warns of its fits, once for all of them.
 */
#include "pg/run/fit_count.h"

#include "pg/run/run_job.h"
#include "pg/values/datum.h"

bool pgkm_count_fit(PgkmFitCount *count, const PgkmRequest *request, const PgkmResult *result)
{
    ++count->fits;
    if (result->converged != 0)
        return false;
    count->max_iter = pgkm_shown_fit(request).max_iter;
    return count->unfinished++ == 0;
}

bool pgkm_count_fewer(PgkmFitCount *count, PgkmAlgorithm algorithm, const PgkmResult *result, int64 k)
{
    if (result->k >= k || count->fewer++ > 0)
        return false;
    count->algorithm = algorithm;
    count->k = k;
    count->found = result->k;
    count->rows = result->n;
    return true;
}

static void warn_fewer(const PgkmFitCount *count)
{
    const bool is_mixture = count->algorithm == PGKM_MIXTURE;
    const char *const things = is_mixture ? "components" : "clusters";
    const char *const same = "Rows are the same to the precision of a centroid (44 bits below the range of its "
                             "feature)";
    const char *const detail = count->rows < count->k ? psprintf("There %s %s.", count->rows == 1 ? "is" : "are",
                                                                 pgkm_counted(count->rows, "row"))
                               : is_mixture           ? psprintf("%s.", same)
                                            : psprintf("%s, or the last iteration left clusters without rows.", same);

    const char *const group = count->group == NULL ? "" : psprintf("It is the group with %s. ", count->group);

    ereport(WARNING,
            (count->fits > 1
                 ? errmsg("%lld of %lld fits found fewer %s than k, for example %d instead of %lld",
                          (long long)count->fewer, (long long)count->fits, things, count->found, (long long)count->k)
                 : errmsg("number of %s found (%d) is less than k (%lld)", things, count->found, (long long)count->k),
             errdetail("%s%s", group, detail)));
}

void pgkm_warn_counted(const PgkmFitCount *count)
{
    if (count->fewer > 0)
        warn_fewer(count);
    if (count->unfinished == 0)
        return;
    ereport(WARNING, (errcode(MAKE_SQLSTATE('0', '1', 'K', '0', '1')),
                      count->fits == 1 ? errmsg("the fit ended at max_iter = %d and has not converged", count->max_iter)
                                       : errmsg("%lld of %lld fits ended at max_iter = %d without having converged",
                                                (long long)count->unfinished, (long long)count->fits, count->max_iter),
                      errhint("Raise max_iter.")));
}
