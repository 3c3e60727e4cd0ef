// encoded.cpp - makes encodings where they are asked for, keeps them, and gives up those that nobody uses.
#include "cpu/encode/encoded.hpp"

#include <utility>

#include "cpu/unless_short.hpp"

namespace pgkm::cpu {

template <typename T>
std::shared_ptr<EncodedRows<T>> EncodedRows<T>::of(const Rows<T> &rows)
{
    if (rows.data == nullptr)
        return std::make_shared<EncodedRows>(rows.context);
    const Data &data = *rows.data;
    const std::pair key(rows.values - static_cast<const T *>(data.points.values), rows.n);
    std::shared_ptr<EncodedRows> own;
    {
        const std::lock_guard lock(data.encoded_mutex);
        auto &kept = data.encoded[key];
        if (!kept)
            kept = std::make_shared<EncodedRows>(rows.context);
        own = std::static_pointer_cast<EncodedRows>(kept);
    }
    // Without this the many problems or batches of one load would leave an empty one each.
    const auto let_go = [&data, key, own](EncodedRows *) mutable {
        const std::lock_guard lock(data.encoded_mutex);
        own.reset();
        const auto kept = data.encoded.find(key);
        if (kept->second.use_count() == 1 && static_cast<EncodedRows *>(kept->second.get())->is_empty())
            data.encoded.erase(kept);
    };
    return {own.get(), let_go};
}

template <typename T>
bool EncodedRows<T>::is_empty()
{
    const std::lock_guard lock(mutex_);
    return !bits_ && !directions_ && !projection_ && !int16_;
}

template <typename T>
std::shared_ptr<const Centre<T>> EncodedRows<T>::centre(const Rows<T> &rows)
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
        const std::shared_ptr<const Centre<T>> centre = this->centre(rows);
        if (!directions_)
            directions_ = std::make_shared<const Directions>(find_directions(rows, centre->middle.data(), most));
        const std::shared_ptr<const Directions> directions = directions_;
        const std::shared_ptr<const Projection<T>> kept = projection_;
        const int features =
            choose_features(rows, centre->middle.data(), *directions, use, kept ? kept->features() : 0);
        if (features == 0 || (kept && kept->features() == features))
            return features == 0 ? nullptr : kept;
        return Projection<T>::make(rows, centre, *directions, features);
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
    drop(directions_);
    drop(centre_); // which the others may have used
}

template class EncodedRows<float>;
template class EncodedRows<double>;

} // namespace pgkm::cpu
