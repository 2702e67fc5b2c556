"""Whether models answer a rewording as they answer its item: the decision of the answering check. Pure."""
