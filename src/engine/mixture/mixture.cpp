// mixture.cpp - fits of Gaussian mixtures, from a request to its models.
#include "engine/mixture/mixture.hpp"

#include <cmath>

#include "engine/mixture/fitter.hpp"
#include "engine/mixture/options.hpp"
#include "engine/mixture/work.hpp"

namespace pgkm {
namespace {

// A tied covariance follows from that of all rows.
PgkmStatus supported(const PgkmRequest &request, const PgkmBackend &table, PgkmError *error)
{
    if (request.mixture.covariance_type == PGKM_COVARIANCE_TIED &&
        table.moments(nullptr, nullptr, 0, nullptr, error) != PGKM_OK)
        return error->status;
    return table.em_step(nullptr, nullptr, 0, nullptr, nullptr, error);
}

class MixtureModels : public Models {
  public:
    explicit MixtureModels(std::vector<MixtureModel> &&models) : models_(std::move(models)) {}
    std::int64_t size() const override { return static_cast<std::int64_t>(models_.size()); }
    void get(std::int64_t i, PgkmResult *result) const override
    {
        const MixtureModel &model = models_[static_cast<std::size_t>(i)];
        const MixtureParameters &parameters = model.parameters;
        const double count = parameter_count(parameters.type, parameters.k, parameters.d);
        result->k = parameters.k;
        result->d = parameters.d;
        result->n = model.n;
        result->center = data_or_null(model.units.center);
        result->scale = data_or_null(model.units.scale);
        result->weights = parameters.weights.data();
        result->means = parameters.means.data();
        result->covariances = parameters.covariances.data();
        result->log_likelihood = model.log_likelihood;
        result->trace = model.trace.data();
        result->n_iter = static_cast<int32_t>(model.trace.size());
        result->converged = model.converged ? 1 : 0;
        result->aic = 2.0 * count - 2.0 * model.log_likelihood;
        result->bic = count * std::log(model.mass) - 2.0 * model.log_likelihood;
        result->labels = data_or_null(model.labels);
    }

  private:
    std::vector<MixtureModel> models_; // one for each group
};

void check(const PgkmRequest &request, const PgkmGroup &group)
{
    check_mixture_options(request.mixture, group.k, request.points.d);
}

std::unique_ptr<Models> fit(const PgkmRequest &request, Workplace *place, Monitor &monitor)
{
    return std::make_unique<MixtureModels>(MixtureFitter(request, *place, monitor).run());
}

} // namespace

const Algorithm mixtures = {"a mixture", check, work_of_mixture, fixed_bytes_of_mixtures, bytes_of_mixture,
                            supported,   fit};

} // namespace pgkm
