/// The opened files of a store, which may have no names.
package final class OpenedFiles: Sendable, Hashable {
  private let files: [StoreFileSet.Part: ReadableFile]

  package init(_ files: [StoreFileSet.Part: ReadableFile]) { self.files = files }

  package subscript(part: StoreFileSet.Part) -> ReadableFile? { files[part] }

  package static func == (left: OpenedFiles, right: OpenedFiles) -> Bool { left === right }

  package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
