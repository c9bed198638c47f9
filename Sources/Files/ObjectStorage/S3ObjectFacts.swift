package import StoreFiles

/// What a server says of an object.
package struct S3ObjectFacts: Sendable, Hashable {
  /// The key.
  package var key: String

  /// The length in bytes.
  package var bytes: Int64

  /// When it was written, by the server's clock; nil where the server does not say.
  package var modified: Timestamp?
}

/// A page of a listing.
package struct S3Listing: Sendable {
  /// The objects, sorted by key.
  package var objects: [S3ObjectFacts] = []

  /// The server's clock when it answered; nil where it does not say.
  package var date: Timestamp?
}

/// When an object may be written.
package enum S3WriteCondition: Sendable, Hashable {
  /// In any case; what is there is replaced.
  case none

  /// Only where there is none of that key.
  case absent
}
