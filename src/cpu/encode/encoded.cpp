// encoded.cpp - makes encodings where they are asked for, keeps them, and gives up those that nobody uses.
#include "cpu/encode/encoded.hpp"

#include "cpu/unless_short.hpp"

namespace pgkm::cpu {

template <typename T>
std::shared_ptr<EncodedRows<T>> EncodedRows<T>::of(const Rows<T> &rows)
{
    if (rows.data == nullptr)
        return std::make_shared<EncodedRows>(rows.context);
    const std::lock_guard lock(rows.data->encoded_mutex);
    auto &kept = rows.data->encoded[{rows.values - static_cast<const T *>(rows.data->points.values), rows.n}];
    if (!kept)
        kept = std::make_shared<EncodedRows>(rows.context);
    return std::static_pointer_cast<EncodedRows>(kept);
}

template <typename T>
const std::shared_ptr<const Centre<T>> &EncodedRows<T>::centre(const Rows<T> &rows)
{
    if (!centre_)
        centre_ = std::make_shared<const Centre<T>>(rows);
    return centre_;
}

template <typename T>
std::shared_ptr<const BitRows<T>> EncodedRows<T>::bits(const Rows<T> &rows)
{
    const std::lock_guard lock(mutex_);
    if (!bits_ && has_bits_)
        bits_ = unless_short([&] { return BitRows<T>::make(rows, has_bits_); });
    return bits_;
}

template <typename T>
std::shared_ptr<const Projection<T>> EncodedRows<T>::projection(const Rows<T> &rows, const ProjectionUse<T> &use)
{
    const std::lock_guard lock(mutex_);
    const std::int32_t most = most_directions(rows, use.passes);
    if (most == 0)
        return nullptr;
    auto found = unless_short([&]() -> std::shared_ptr<const Projection<T>> {
        if (!directions_)
            directions_ = std::make_shared<const Directions>(find_directions(rows, centre(rows)->middle.data(), most));
        const std::shared_ptr<const Directions> directions = directions_;
        const std::shared_ptr<const Projection<T>> kept = projection_;
        const int features =
            choose_features(rows, centre(rows)->middle.data(), *directions, use, kept ? kept->features() : 0);
        if (features == 0 || (kept && kept->features() == features))
            return features == 0 ? nullptr : kept;
        return Projection<T>::make(rows, centre(rows), *directions, features);
    });
    if (found)
        projection_ = found;
    return found;
}

template <typename T>
std::shared_ptr<const Int16Rows<T>> EncodedRows<T>::int16(const Rows<T> &rows, bool keep)
{
    const std::lock_guard lock(mutex_);
    if (int16_)
        return int16_;
    if (keep)
        int16_ = unless_short([&] { return Int16Rows<T>::make(rows, centre(rows)); });
    return int16_ ? int16_ : std::make_shared<const Int16Rows<T>>(rows, centre(rows));
}

template <typename T>
void EncodedRows<T>::give_up()
{
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock)
        return;
    const auto drop = [](auto &kept) {
        if (kept.use_count() == 1)
            kept.reset();
    };
    drop(bits_);
    drop(projection_);
    drop(int16_);
}

template class EncodedRows<float>;
template class EncodedRows<double>;

} // namespace pgkm::cpu
