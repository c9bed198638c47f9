package import StoreFiles

/// An object that is being written in parts.
package struct S3Upload: Sendable, Hashable {
  /// The key that the object will have.
  package var key: String

  /// What the server calls the upload.
  package var id: String

  /// When it was begun, by the server's clock; nil where the server does not say.
  package var begun: Timestamp?

  /// An upload.
  package init(key: String, id: String, begun: Timestamp? = nil) {
    self.key = key
    self.id = id
    self.begun = begun
  }
}

/// A part of an object that was written.
package struct S3Part: Sendable, Hashable {
  /// Its number, from 1 on.
  package var number: Int

  /// What the server calls its content.
  package var tag: String
}
