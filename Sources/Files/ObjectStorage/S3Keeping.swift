package import StoreFiles

/// What a bucket does with what is removed.
package enum S3Keeping: Sendable, Hashable {
  case nothing

  /// Earlier versions of objects stay, also of those that were removed.
  case versions

  /// Objects cannot be removed for good for so many days after they were written; where no number is set, for as long as each
  /// one's own lock says.
  case locked(days: Int?)

  /// The credentials do not allow to ask.
  case unknown

  /// That what is removed is not gone, as a sentence; nil where it is, or where that is not known.
  package func words(at date: Timestamp) -> String? {
    switch self {
    case .nothing, .unknown: nil
    case .versions:
      "The bucket keeps versions: what is removed is hidden, and takes room until a rule of the bucket expires it."
    case .locked(nil):
      "The bucket locks objects: what is removed is hidden, and stays for as long as each object's lock says."
    case .locked(let days?):
      "The bucket locks objects for \(counted(days, "day")): what is removed is hidden, and can be deleted for good once that has passed since it was written, all of it from \(Self.day(in: days, date)) on, unless an object has a longer lock of its own."
    }
  }

  private static func day(in days: Int, _ date: Timestamp) -> String {
    String(Timestamp(secondsSince1970: date.secondsSince1970 + Int64(days + 1) * 86_400).rfc3339.prefix(10))
  }
}
