internal import StoreFiles

extension Timestamp {
  /// The first moment of its month.
  var beginningOfMonth: Timestamp {
    let parts = civil
    return Timestamp(
      secondsSince1970: Int64(Timestamp.daysSince1970(year: parts.year, month: parts.month, day: 1)) * 86400)
  }
}
