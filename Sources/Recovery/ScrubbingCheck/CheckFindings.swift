public import StoreFiles

/// What the check found: where values of the original still are, and never which.
public struct CheckFindings: Sendable, Hashable {
  /// How a value was found.
  public enum Kind: String, Sendable, Hashable, Codable {
    /// At the same place as in the original.
    case samePlace

    /// Anywhere, as it is or in another form.
    case elsewhere
  }

  /// A place where a value was found.
  public struct Place: Sendable, Hashable {
    /// How.
    public var kind: Kind

    /// The file, by its name; of a file of a large value the folder's.
    public var file: PathText

    /// The page, counted from one; nil where it is none.
    public var page: Int?

    /// The table or the index that the page belongs to; nil where nothing leads to it.
    public var table: String?

    /// The offset of the page, or of the value where that is known.
    public var offset: Int64

    /// The place in words.
    public var words: String {
      let owner = table.map { " of \"\(printable($0))\"" } ?? ""
      return page.map { "on page \($0)\(owner) of \(printable(file.text))" }
        ?? "at byte \(offset) of \(printable(file.text))"
    }
  }

  /// How many pages and pieces of files hold a value.
  public internal(set) var count = 0

  /// The first of the places; 100 at most.
  public internal(set) var places: [Place] = []

  /// How many bytes were compared and searched.
  public internal(set) var bytes: Int64 = 0

  /// One of how many pieces of values was looked for; 1 where all were.
  public internal(set) var sampling = 1

  /// Whether nothing was found.
  public var isEmpty: Bool { count == 0 }

  mutating func add(_ place: Place) {
    count += 1
    if places.count < 100 { places.append(place) }
  }

  /// Takes what was found elsewhere; a place that both have counts once.
  mutating func take(_ other: CheckFindings) {
    let known = Set(places)
    let added = other.places.filter { !known.contains($0) }
    count += other.count - (other.places.count - added.count)
    places += added.prefix(max(0, 100 - places.count))
    bytes += other.bytes
  }
}
