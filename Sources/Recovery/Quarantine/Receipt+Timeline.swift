package import StoreFiles

extension Receipt {
  /// One thing that happened to a quarantined store.
  package struct Moment: Sendable, Hashable, Codable {
    /// What kind of thing: a word that later versions may add to.
    package struct Kind: RawRepresentable, Sendable, Hashable, Codable {
      /// The word.
      package var rawValue: String

      /// A kind by its word.
      package init(rawValue: String) { self.rawValue = rawValue }

      /// It was moved into quarantine.
      package static let quarantined = Kind(rawValue: "quarantined")

      /// A clean store was made of its records.
      package static let salvaged = Kind(rawValue: "salvaged")

      /// Its salvage gave nothing that an app could open.
      package static let salvageFailed = Kind(rawValue: "salvage-failed")

      /// A copy of the salvaged store was put into a store's place.
      package static let installed = Kind(rawValue: "installed")

      /// An empty store was put into its place.
      package static let replaced = Kind(rawValue: "replaced")

      /// It was exported for debugging.
      package static let exported = Kind(rawValue: "exported")

      /// A bundle of it was sent.
      package static let sent = Kind(rawValue: "sent")

      /// It came in with a bundle that was received.
      package static let received = Kind(rawValue: "received")

      /// It was put back.
      package static let released = Kind(rawValue: "released")

      /// Reads the word.
      package init(from decoder: any Decoder) throws {
        rawValue = try decoder.singleValueContainer().decode(String.self)
      }

      /// Writes the word.
      package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
      }
    }

    /// What kind of thing.
    package var kind: Kind

    /// When, in RFC 3339.
    package var date: String

    /// What happened, in words; nil where the kind says it all.
    package var words: String?

    /// The file or folder it is about; nil where there is none.
    package var path: PathText?

    /// A thing that happened.
    package init(_ kind: Kind, at date: Timestamp, words: String? = nil, path: PathText? = nil) {
      self.kind = kind
      self.date = date.rfc3339
      self.words = words
      self.path = path
    }
  }

  /// The most moments that are kept; of more, the first and the latest are.
  private static let maximumMoments = 500

  /// What has happened to the store, oldest first, as far as it is known.
  package var history: [Moment] {
    if let timeline { return timeline }
    var moments: [Moment] = []
    if let date = Timestamp(date) { moments.append(Moment(.quarantined, at: date, words: reason.words)) }
    if let released, let date = Timestamp(released.date) {
      moments.append(Moment(.released, at: date, path: released.path))
    }
    return moments
  }

  /// Adds a moment.
  package mutating func add(_ moment: Moment) {
    var moments = history
    moments.append(moment)
    if moments.count > Self.maximumMoments { moments.removeSubrange(1...(moments.count - Self.maximumMoments)) }
    timeline = moments
  }
}
