/*
 * profile.h - what tells the clusters of a model apart: for kmeans_profile and its picture.
 */
#ifndef PGKM_PG_PROFILE_H
#define PGKM_PG_PROFILE_H

#include "pg/kmeans/model.h"

struct Profile {
    PgkmModel model;
    const Sources
        *sources;        /* NULL where they are not known, or say nothing of values: those of a direction are no data */
    const char **names;  /* of the features: d */
    const double *means; /* d: of the rows, or else of the centroids */
    const double
        *spreads; /* d: standard deviations of the rows, or else of the centroids from the means; 0: constant */
    bool knows_deviations; /* those of the rows */
};

/* Reads and checks a model, in the current memory context. 22003 where a mean exceeds the range of double precision. */
void profile_read(Datum composite, Profile *profile);

/* The value of a feature, which may be a mean of a cluster, as text, a number with so many digits of the
 * spread; in the current memory context. */
const char *profile_text(const Profile *profile, int32 f, double value, int digits);

#endif
