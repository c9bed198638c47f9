/// A model in the form that Xcode's editor archives it in, as mapping models embed it.
package struct EditorModel: Sendable {
  /// The model; what does not enter version hashes, such as defaults and indexes, is left out.
  package let model: ManagedObjectModel

  /// Whether every setting in the archive was understood, so that the version hashes can be relied upon.
  package let isComplete: Bool

  /// Reads an archive of `XDPMModel`.
  ///
  /// - Throws: `ModelError` where it is no such archive, is damaged, or the model contradicts itself.
  package init(_ bytes: [UInt8]) throws(ModelError) {
    var reader = try EditorModelReader(bytes)
    model = try reader.model()
    isComplete = reader.unknownSettings.isEmpty
  }
}
