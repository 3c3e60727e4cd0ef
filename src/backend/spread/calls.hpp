// calls.hpp - problems cut into pieces by where their rows lie, and calls of the inner backend for them.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/spread/rows.hpp"
#include "numeric/platform.hpp"

namespace pgkm::spread {

// The pieces of all problems, in order: place by place they are one call's problems.
class Pieces {
  public:
    // Problems in several pieces are left out unless `cut` says so: rest() has them then.
    Pieces(const Rows &rows, const PgkmProblem *problems, std::int64_t n_problems, bool cut)
    {
        on_.resize(rows.places().count());
        for (std::int64_t i = 0; i < n_problems; ++i) {
            std::vector<Piece> pieces = rows.pieces_of(problems[i]);
            if (pieces.size() > 1 && !cut) {
                rest_.push_back({i, std::move(pieces)});
                continue;
            }
            for (const Piece &piece : pieces) {
                OnPlace &on = on_[piece.place];
                on.problems.push_back(piece.problem);
                on.of.push_back({i, piece.skip, pieces.size() == 1});
            }
        }
        for (std::size_t place = 0; place < on_.size(); ++place)
            if (!on_[place].of.empty())
                places_.push_back(place);
    }

    struct Origin {
        std::int64_t problem;
        std::int64_t skip; // rows of it before these
        bool whole;        // all rows of it
    };
    struct OnPlace {
        std::vector<PgkmProblem> problems;
        std::vector<Origin> of;
    };
    struct Rest {
        std::int64_t problem;
        std::vector<Piece> pieces;
    };
    const std::vector<std::size_t> &places() const { return places_; } // that have any
    OnPlace &on(std::size_t place) { return on_[place]; }
    const std::vector<Rest> &rest() const { return rest_; }

  private:
    std::vector<OnPlace> on_;
    std::vector<std::size_t> places_;
    std::vector<Rest> rest_;
};

// Calls call(inner, data, problems, count, results, error) for the pieces of all problems, all places at once.
// make(origin, piece) makes a piece's results, in the caller's arrays where they are the whole problem's.
// merge(problem, first, results) gets them in order; `first` tells the first piece of a problem.
template <typename Result, typename Make, typename Call, typename Merge>
void call_pieces(Rows &rows, const PgkmProblem *problems, std::int64_t n_problems, Make &&make, Call &&call,
                 Merge &&merge)
{
    Pieces pieces(rows, problems, n_problems, true);
    std::vector<std::vector<Result>> results(rows.places().count());
    for (const std::size_t place : pieces.places())
        for (std::size_t i = 0; i < pieces.on(place).of.size(); ++i)
            results[place].push_back(make(pieces.on(place).of[i], pieces.on(place).problems[i]));
    rows.places().run(pieces.places(), [&](std::size_t place, PgkmError *error) {
        Pieces::OnPlace &on = pieces.on(place);
        PgkmData *const data = rows.data(place, error);
        return data == nullptr ? error->status
                               : call(rows.places().inner(), data, on.problems.data(),
                                      static_cast<std::int64_t>(on.problems.size()), results[place].data(), error);
    });
    for (const std::size_t place : pieces.places())
        for (std::size_t i = 0; i < pieces.on(place).of.size(); ++i)
            merge(pieces.on(place).of[i].problem, pieces.on(place).of[i].skip == 0, results[place][i]);
}

// Calls call(inner, data, problems, count, problem number of each, error) for problems that lie on one place, all
// places at once; then, for each of the others, on a place to which its rows are brought.
template <typename Call>
void call_whole(Rows &rows, const PgkmProblem *problems, std::int64_t n_problems, Call &&call)
{
    Pieces pieces(rows, problems, n_problems, false);
    const PgkmBackend &inner = rows.places().inner();
    rows.places().run(pieces.places(), [&](std::size_t place, PgkmError *error) {
        Pieces::OnPlace &on = pieces.on(place);
        std::vector<std::int64_t> of;
        for (const Pieces::Origin &origin : on.of)
            of.push_back(origin.problem);
        PgkmData *const data = rows.data(place, error);
        return data == nullptr ? error->status : call(inner, data, on.problems, of, error);
    });
    for (const Pieces::Rest &rest : pieces.rest())
        rows.places().run({rest.pieces[0].place}, [&](std::size_t place, PgkmError *error) {
            const auto attempt = [&] {
                std::vector<PgkmProblem> whole = {problems[rest.problem]};
                PgkmData *const data = rows.gather(place, whole[0], error);
                if (data == nullptr)
                    return error->status;
                whole[0].first_row = 0;
                return call(inner, data, whole, std::vector<std::int64_t>{rest.problem}, error);
            };
            const PgkmStatus status = attempt();
            if (status != PGKM_LIMIT && status != PGKM_OUT_OF_MEMORY)
                return status;
            rows.lend(place);
            return attempt();
        });
}

} // namespace pgkm::spread
