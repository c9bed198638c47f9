package import HTTPServer

/// A route as the description of the API tells it.
package struct DocumentedRoute: Sendable, Hashable {
  /// What is answered.
  package enum Kind: String, Sendable, Hashable {
    /// A page, and the same as JSON at the address with `.json`.
    case page

    /// Something done, then a page; JSON at the address with `.json`.
    case action

    /// Anything else: a download, a stream, a picture.
    case other
  }

  /// A parameter in the query, or a field of a form.
  package struct Field: Sendable, Hashable {
    /// Its name.
    package var name: String

    /// What it says, in a sentence.
    package var about: String

    /// Whether it must be there.
    package var isRequired: Bool

    /// A field.
    package init(_ name: String, _ about: String, isRequired: Bool = false) {
      self.name = name
      self.about = about
      self.isRequired = isRequired
    }
  }

  /// The method.
  package var method: Method

  /// The address, with the names of its parameters in braces.
  package var pattern: String

  /// What it is, in a sentence.
  package var about: String

  /// What is answered.
  package var kind: Kind

  /// The parameters of the query, or the fields of the form.
  package var fields: [Field]

  /// The type of what is answered, for those that are no page.
  package var type = "text/html"

  /// Whether it is answered without a session.
  package var isOpen = false
}
